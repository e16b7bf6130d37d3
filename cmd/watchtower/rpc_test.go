package main_test

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// Applications with viem work through /rpc by changing the URL alone.
func TestViemThroughRPC(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		plain, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), "--block-time", "1")
		check(t, err)
		t.Cleanup(func() { check(t, plain.Remove()) })
		check(t, plain.Start(w.ctx))
		w.chains = fmt.Sprintf("31337=%s;%s", plain.URL(), w.chains)
		s := w.service(t)
		check(t, s.Start(w.ctx))
		for _, chain := range []struct{ kind, id string }{{"ethereum", "31337"}, {"tempo", "42431"}} {
			t.Run(chain.kind, func(t *testing.T) {
				lines := w.script(t, "rpc.mjs", s.URL+"/rpc/"+chain.id, chain.kind)
				if len(lines) < 10 {
					t.Errorf("only %d things were done", len(lines))
				}
				for _, l := range lines {
					if l["status"] != "ok" {
						t.Errorf("%s: %v", l["kind"], l["error"])
					}
				}
			})
		}
		check(t, s.Stop(w.ctx))
	})
}
