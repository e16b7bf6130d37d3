package app

import (
	"strings"
	"testing"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
)

// The program refuses to serve if relaying is switched off, or the switch is unclear.
func TestEnabled(t *testing.T) {
	s := resolved(t, "--store=embedded::memory:")
	for value, want := range map[string]string{
		"false": "the relayer does not start", "0": "the relayer does not start", "FALSE": "the relayer does not start",
		"": "true or false", "off": "true or false", "no": "true or false",
	} {
		err := Serve(t.Context(), s, Options{Options: delivery.Options{}, Environ: []string{variable, "RELAYER_ENABLED=" + value}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	for _, environ := range [][]string{nil, {"RELAYER_ENABLED=true"}, {"RELAYER_ENABLED=1"}, {"RELAYER_ENABLED_TOO=false"}} {
		if err := checkEnabled(environ); err != nil {
			t.Errorf("%v: %v", environ, err)
		}
	}
}
