package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Every input yields either a configuration or its problems. The values shown of a
// configuration, given again, yield the same configuration.
func FuzzResolve(f *testing.F) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example), "LISTEN=:1\nCHAINS=42431=http://a,http://b;1=http://c", "scheduler-lead=2m\nlog-level=warn")
	f.Add("chains:\n- {id: 1, endpoints: [{url: http://a, websocket: ws://a}]}\n", "CONFIRMATIONS=1=0;1=2", "store=embedded::memory:")
	f.Add("a: &a [*a]\n? {x}\n: !!set {y}\n--- |\n", "PORT=tcp://x\nSERVICE_HOST=", "watcher-use-websocket=\nconfig=x")
	f.Add("\"\\ud800\": >-\n  \t'\n%YAML 9\n<<: *x\n", "=\n=x", "store=postgres://%")
	f.Fuzz(func(t *testing.T, file, environment, given string) {
		var environ []string
		for line := range strings.SplitSeq(environment, "\n") {
			environ = append(environ, envPrefix+line)
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		Flags(flags)
		if err := flags.Set("config", "f"); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(given, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok && flags.Lookup(name) != nil {
				_ = flags.Set(name, value) // a refused value leaves the flag unchanged
			}
		}
		read := func(string) ([]byte, error) { return []byte(file), nil }
		c, settings, err := Resolve(flags, environ, read)
		var problems Problems
		switch {
		case errors.As(err, &problems) && len(problems) > 0 && settings == nil:
			return
		case err != nil || len(settings) == 0:
			t.Fatalf("%v and %d settings", err, len(settings))
		}
		for _, chain := range c.Chains {
			if len(chain.Endpoints) == 0 || chain.ID == 0 || chain.ID > chainIDMax || chain.Confirmations > confirmationsMax {
				t.Fatalf("chain %+v", chain)
			}
		}
		again(t, c, settings)
	})
}

// again resolves the values of a configuration a second time, with their secrets.
func again(t *testing.T, c Config, settings []Setting) {
	secret := map[string]string{"store": reveal(c.Store), "database": reveal(c.Database), "chains": "", "confirmations": ""}
	var environ []string
	for _, s := range settings {
		value, special := secret[s.Name]
		if !special {
			value = s.Value
		}
		if value != "" {
			environ = append(environ, (&setting{path: s.Name}).env()+"="+value)
		}
	}
	second, shown, err := Resolve(nil, environ, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Chains = nil
	if diff := cmp.Diff(c, second); diff != "" {
		t.Fatal(diff)
	}
	for i, s := range shown {
		if s.Value != settings[i].Value && s.Name != "chains" && s.Name != "confirmations" {
			t.Fatalf("%s was %s and is %s", s.Name, settings[i].Value, s.Value)
		}
	}
}

func reveal(s Store) string {
	if s.Engine == Postgres || s.Engine == EventStoreDB {
		return s.URL.Reveal()
	}
	return fmt.Sprint(s)
}
