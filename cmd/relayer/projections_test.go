package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// says runs a command of the program on the world's store. It requires the exit status want, and
// says in the output.
func (w *world) says(t *testing.T, want int, says string, env []string, args ...string) string {
	t.Helper()
	c, err := rig.Run(w.ctx, nil, env, program, append(args, w.flags...)...)
	check(t, err)
	if c.Status != want || !strings.Contains(c.Says(), says) {
		t.Fatalf("%v ended with %d, want %d and %q: %s", args, c.Status, want, says, c.Says())
	}
	return c.Stdout
}

// While intents are carried out, all their rows are deleted, and a rebuild is started, killed at
// each of its crash points, and finished. No list request fails meanwhile. In the end the rows
// equal the fold of the log byte for byte, from the projector and from the rebuild.
func TestRebuildWhileServing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[0], store)
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c := w.client(t, s)
		first := w.payments(20)
		w.create(t, []client{c}, first...)

		var beside sync.WaitGroup
		stop := make(chan struct{})
		reads := 0
		beside.Go(func() {
			for {
				var page struct{ Intents []shown }
				if status, err := c.do(http.MethodGet, "/v1/intents?limit=50", nil, &page); err != nil || status != http.StatusOK {
					t.Errorf("a list is answered with %d, %v", status, err)
					return
				}
				reads++
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		check(t, rig.OnView(w.ctx, w.database(), "DELETE FROM readers WHERE name = 'intents'", "DELETE FROM intents", "DELETE FROM intent_attempts"))
		var more []intent.Request
		for i := range 20 {
			r := w.pool(fmt.Sprint("more-", i))
			r.Gas.Limit = gasEnough
			more = append(more, r)
		}
		w.create(t, []client{c}, more...)
		for _, point := range []string{"rebuild.loaded", "rebuild.indexed", "rebuild.before-swap"} {
			w.says(t, -1, "", []string{"WATCHTOWER_CRASH_AT=" + point}, "projections", "rebuild", "intents")
		}
		w.says(t, 0, "intents: rebuilt", nil, "projections", "rebuild")
		w.done(t, s)
		close(stop)
		beside.Wait()
		if reads < 20 {
			t.Errorf("only %d reads", reads)
		}
		w.says(t, 0, "intents: 40 rows, 0 missing, 0 different, 0 too many", nil, "projections", "verify")
		check(t, s.Stop(w.ctx)) // from now on nothing changes
		w.rebuiltAlike(t)
		w.says(t, 0, "no faults", nil, "audit", "verify")
		w.says(t, 0, "intent.completed.v1", nil, "audit", "show", string(intent.Stream(first[0].ID())))
		w.judge(t)
	})
}

// rebuiltAlike compares dumps of rows made by a projector and by a rebuild. It checks that
// damage is found and repaired, and that a dry run changes nothing.
func (w *world) rebuiltAlike(t *testing.T) {
	t.Helper()
	dump := func() string { return w.says(t, 0, "", nil, "projections", "dump", "intents") }
	live := dump()
	if strings.Count(live, `"table":"intents"`) != len(w.asked) || strings.Count(live, `"table":"intent_attempts"`) < len(w.asked) {
		t.Errorf("the dump has %d lines", strings.Count(live, "\n"))
	}
	check(t, rig.OnView(w.ctx, w.database(), "UPDATE intents SET status = 'failed' WHERE position = (SELECT min(position) FROM intents)",
		"DELETE FROM intents WHERE position = (SELECT max(position) FROM intents)"))
	out := w.says(t, 1, `status is "failed" and should be "completed"`, nil, "projections", "verify", "intents")
	if !strings.Contains(out, "1 missing, 1 different") || !strings.Contains(out, "intents has no row") {
		t.Errorf("verify: %s", out)
	}
	if w.says(t, 0, "would fold", nil, "projections", "rebuild", "--dry-run", "intents"); dump() == live {
		t.Error("it was not only told what would be done")
	}
	w.says(t, 0, "intents: rebuilt", nil, "projections", "rebuild", "--fresh", "intents")
	if dump() != live {
		t.Error("the rebuilt rows are others than those that the projector made")
	}
	w.says(t, 0, "none", nil, "projections", "status", "intents")
	w.says(t, 2, `there are transactions, ownership, groups, intents`, nil, "projections", "rebuild", "nothing")
}
