package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// on runs a test on the named stores in parallel: the stores of [engines], a log in an event
// store (eventstoredb), and a Postgres with leases of lanes in a Redis (redis).
func on(t *testing.T, test func(t *testing.T, store func(t *testing.T, dir string) []string), names ...string) {
	all := map[string]func(t *testing.T, dir string) []string{
		"embedded": inFiles, "postgres": inPostgres, "eventstoredb": eventStore, "redis": leasedByRedis,
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, all[name])
		})
	}
}

func leasedByRedis(t *testing.T, dir string) []string {
	return append(inPostgres(t, dir), "--redis="+newRedis(t).URL(), "--lane-leases=redis")
}

// The doctor examines lanes of nonce keys other than 0 like the default lane. Each is listed,
// with its own nonces, once an intent has opened it. With nothing in flight it needs no holder;
// with something in flight it does.
func TestDoctorOfNonceKeys(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[0], store, "--lane-linger=1s")
		alice := wallet.Dev(0).Address()
		key := chain.NonceKey{31: 7}
		under := func(what string) intent.Request {
			r := w.one(0, what)
			r.NonceKey = intent.NoncePolicy{Mode: intent.NonceFixed, Key: &key}
			return r
		}
		lanes := func(args ...string) (all map[chain.NonceKey]keyed, status int) {
			c, err := rig.Run(w.ctx, nil, nil, program, append(append([]string{"doctor", alice.String(), "--json"}, args...), w.flags...)...)
			check(t, err)
			var found []keyed
			if err := json.Unmarshal([]byte(c.Stdout), &found); err != nil {
				t.Fatalf("the doctor ends with %d, %v: %s", c.Status, err, c.Says())
			}
			all = map[chain.NonceKey]keyed{}
			for _, d := range found {
				all[d.NonceKey] = d
			}
			if len(all) != len(found) {
				t.Fatalf("a lane is there twice: %+v", found)
			}
			return all, c.Status
		}

		first := under("first")
		w.ask(t, first, w.one(0, "plain"))
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c := w.client(t, s)
		w.becomes(t, "both are completed", func() bool {
			for _, r := range w.asked {
				if w.status(t, c, r) != intent.StatusCompleted {
					return false
				}
			}
			return true
		})
		w.becomes(t, "both lanes are well, and one is given up", func() bool {
			all, status := lanes()
			return status == 0 && len(all) == 2 && all[key].Lease.Holder == ""
		})
		all, _ := lanes("--nonce-key", fmt.Sprint(key))
		if d := all[key]; len(all) != 1 || !d.Well || *d.Cursor != 1 || *d.Wants != 1 {
			t.Errorf("under the key: %+v", all)
		}

		w.mining(t, false)
		second := under("second")
		w.create(t, []client{c}, second)
		w.becomes(t, "it is in flight", func() bool {
			all, _ := lanes()
			d := all[key]
			return d.Front != nil && d.Front.Intent == second.ID() && len(d.Front.Attempts) == 1 && d.Front.Nonce == 1 && all[chain.NonceKey{}].Front == nil
		})
		s.Kill()
		w.becomes(t, "its lease lapses", func() bool {
			all, status := lanes()
			return status == 1 && all[key].has("not-held")
		})
		s = w.relayer(t)
		check(t, s.Start(w.ctx))
		w.becomes(t, "somebody has it again", func() bool {
			all, _ := lanes()
			return all[key].Lease.Holder != "" && !all[key].has("not-held")
		})
		w.mining(t, true)
		w.done(t, s)
		w.becomes(t, "all is well again", func() bool { _, status := lanes(); return status == 0 })
		if got := w.client(t, s).must(t, http.StatusOK, http.MethodGet, at(second), nil); got.Status != intent.StatusCompleted {
			t.Errorf("it is %s", got.Status)
		}
		check(t, s.Stop(w.ctx))
		w.judge(t)
	}, "embedded", "eventstoredb")
}

// keyed is the diagnosis of a lane with its nonce key.
type keyed struct {
	diagnosis
	NonceKey chain.NonceKey
	Lease    struct{ Holder string }
}
