package main_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Under load, all rows of all read models are deleted, and a rebuild is started, killed at each
// of its crash points, and finished. No read fails meanwhile. In the end the rows equal the fold
// of the log byte for byte, from projectors and from the rebuild.
func TestRebuildWhileServing(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		// A machine busy with other tests is slow, which is not a failure.
		s.Args = append(s.Args, "--api-work-timeout", "1m", "--api-write-timeout", "2m")
		check(t, s.Start(w.ctx))
		_, members := subscription(wallet.Dev(4), 1, 0, 4)
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(members)...)
		check(t, err)
		first, _ := rig.Payments(9700, 20)
		acked := load(w.ctx, s, first, 4)
		if len(acked) != len(first) {
			t.Fatalf("%d of %d were taken on", len(acked), len(first))
		}
		reads := w.readAround(t, s.URL, first, wallet.Dev(4).Address())
		more, _ := rig.Payments(9701, 40)
		var loading sync.WaitGroup
		loading.Go(func() { load(w.ctx, s, more, 2) })
		w.onView(t, "DELETE FROM readers", // first, as projectors do
			"DELETE FROM transactions", "DELETE FROM groups", "DELETE FROM group_members", "DELETE FROM group_claims", "DELETE FROM ownership")
		for _, point := range []string{"rebuild.loaded", "rebuild.indexed", "rebuild.before-swap"} {
			if out, status := w.projections(t, []string{"WATCHTOWER_CRASH_AT=" + point}, "rebuild"); status != -1 {
				t.Errorf("the rebuild was not killed at %s but ended with %d: %s", point, status, out)
			}
		}
		w.projected(t, "rebuild")
		loading.Wait()
		w.delivered(t, s.URL, slices.Concat(more, first, members), rig.Sealed)
		if n := reads(); n < 20 {
			t.Errorf("only %d reads", n)
		}
		w.projected(t, "verify")
		w.caughtUp(t, s.URL)
		check(t, s.Stop(w.ctx)) // from now on nothing changes
		w.rebuiltAlike(t)
	})
}

// caughtUp waits until every reader of the log is at its head: a service that stops earlier
// leaves rows behind the log.
func (w *world) caughtUp(t *testing.T, url string) {
	t.Helper()
	type reader struct {
		Name string
		Lag  uint64
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var report struct{ Readers []reader }
		readHealth(w.ctx, t, url, &report)
		behind := slices.ContainsFunc(report.Readers, func(r reader) bool { return r.Lag > 0 })
		if !behind && len(report.Readers) > 0 {
			return
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("readers are behind: %+v", report.Readers)
		case <-tick.C:
		}
	}
}

// rebuiltAlike compares dumps of rows made by projectors and by a rebuild. It checks that damage
// is found and repaired, and that a dry run changes nothing.
func (w *world) rebuiltAlike(t *testing.T) {
	live := w.projected(t, "dump")
	if strings.Count(live, "\n") < 64+4 || !strings.Contains(live, `"table":"group_members"`) {
		t.Errorf("the dump has %d lines", strings.Count(live, "\n"))
	}
	w.onView(t, "UPDATE transactions SET status = 'expired' WHERE position = (SELECT min(position) FROM transactions)",
		"DELETE FROM group_members WHERE position = (SELECT min(position) FROM group_members)")
	out, status := w.projections(t, nil, "verify")
	for _, says := range []string{"1 different", "1 missing", `status is "expired" and should be "`, "group_members has no row"} {
		if status != 1 || !strings.Contains(out, says) {
			t.Errorf("verify ended with %d, and does not say %q: %s", status, says, out)
		}
	}
	if out := w.projected(t, "rebuild", "--dry-run"); !strings.Contains(out, "would fold") || w.projected(t, "dump") == live {
		t.Errorf("it was not only told what would be done: %s", out)
	}
	w.projected(t, "rebuild", "--fresh")
	if d := cmp.Diff(strings.Split(live, "\n"), strings.Split(w.projected(t, "dump"), "\n")); d != "" {
		t.Errorf("the rebuilt rows differ from the projectors' (-projectors +rebuild):\n%s", d)
	}
	if out := w.projected(t, "status"); !strings.Contains(out, "none") {
		t.Errorf("status: %s", out)
	}
	if _, status := w.projections(t, nil, "rebuild", "nothing"); status != 2 {
		t.Errorf("the rebuild of what there is not ended with %d", status)
	}
}

// projections runs watchtower projections on the world's store; status is -1 if it was killed.
func (w *world) projections(t *testing.T, env []string, args ...string) (out string, status int) {
	t.Helper()
	return w.command(t, env, append([]string{"projections"}, args...)...)
}

// command runs a command of the program on the world's store; status is -1 if it was killed.
func (w *world) command(t *testing.T, env []string, args ...string) (out string, status int) {
	t.Helper()
	c, err := rig.Run(w.ctx, nil, env, program, append(args, w.store...)...)
	check(t, err)
	if c.Status != 0 {
		return c.Says(), c.Status
	}
	return c.Stdout, 0
}

// projected is projections, and fails the test unless the exit status is 0.
func (w *world) projected(t *testing.T, args ...string) string {
	t.Helper()
	out, status := w.projections(t, nil, args...)
	if status != 0 {
		t.Fatalf("projections %v ended with %d: %s", args, status, out)
	}
	return out
}

// onView runs statements on the read models in one database transaction. A service may be
// running.
func (w *world) onView(t *testing.T, statements ...string) {
	t.Helper()
	dir, database := w.engine()
	if dir != "" {
		database = "embedded:" + dir
	}
	check(t, rig.OnView(w.ctx, database, statements...))
}

// readAround requests lists, transactions and groups until the returned function is called,
// which returns the number of requests. Every status must be 200; groups may also report that
// they are catching up.
func (w *world) readAround(t *testing.T, url string, known []rig.Payment, sender chain.Address) func() int {
	t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	var reading sync.WaitGroup
	var reads atomic.Int64
	for _, path := range []string{"/v1/transactions?limit=50", "/v1/transactions/" + known[0].Hash.String(), "/v1/senders/" + sender.String() + "/groups"} {
		reading.Go(func() {
			for ctx.Err() == nil {
				status, body := get(ctx, url+path)
				if status == http.StatusServiceUnavailable && strings.Contains(body, `"code":"catching-up"`) {
					continue // of groups, which are empty or behind: the API reports that instead of wrong data
				}
				if ctx.Err() == nil && status != http.StatusOK {
					t.Errorf("%s: %d %s", path, status, body)
					return
				}
				reads.Add(1)
			}
		})
	}
	return func() int {
		stop()
		reading.Wait()
		return int(reads.Load())
	}
}

func get(ctx context.Context, url string) (status int, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}
