package app_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// OpenMaster creates a vault key for a store that cannot hold sealed data yet. API keys, which
// are created before the service first starts, do not count.
func TestOpenMaster(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(t.TempDir(), "vault.key")
	opens := func() error {
		_, err := app.OpenMaster(t.Context(), file, db.Log())
		return err
	}
	record := func(stream eventlog.Stream) {
		t.Helper()
		e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{1}, 0), Name: "something.v1", Data: []byte("{}")}
		if _, err := db.Log().Append(t.Context(), stream, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	record(access.Stream)
	if err := opens(); err != nil {
		t.Fatalf("with an API key alone: %v", err)
	}
	record("tx-1")
	if err := opens(); err != nil {
		t.Fatalf("with its key: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := opens(); err == nil {
		t.Error("a store that holds more gets another key")
	}
}

// Further lines are former keys: data sealed under them still opens. A line that is not a key is
// refused, and the error does not quote it.
func TestOpenFormerMasters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vault.key")
	open := func(lines ...string) (payload.Master, error) {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return app.OpenMaster(t.Context(), file, nil)
	}
	first, second := strings.Repeat("ab", payload.KeyBytes), strings.Repeat("cd", payload.KeyBytes)
	before, err := open(first)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := before.Seal(rand.Reader, payload.Ref{Chain: 1}, []byte("raw"))
	if err != nil {
		t.Fatal(err)
	}
	now, err := open(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := now.Open(sealed); err != nil || string(raw) != "raw" {
		t.Errorf("%s, %v", raw, err)
	}
	for name, lines := range map[string][]string{
		"nothing": {""}, "half a key": {first, second[:30]}, "no hex": {strings.Repeat("zz", payload.KeyBytes)},
		"too many": {first, first, first, first, first, first, first, first, first},
	} {
		if _, err := open(lines...); err == nil || strings.Contains(err.Error(), lines[len(lines)-1]) && lines[0] != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
