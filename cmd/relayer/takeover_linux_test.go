package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// A holder stops at some point of its work with a lease of another minute. The leases are lost,
// and another process takes the lane. Then the first resumes, also between its check and its
// append. Expected: the log refuses all its further appends to the lane, and it logs that and
// releases the lane. The other carries out all intents once. Both may send recorded bytes,
// without harm.
func TestTakenOverBehindItsBack(t *testing.T) {
	t.Parallel()
	for name, points := range map[string][]string{
		"store": {opening, "lane.append.before:3", "attempts.kept", "intents.told"},
		"redis": {"lane.append.before:2", "lane.append.before:4", "lane.attempted", "intents.settled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, lose := newTakeover(t, name)
			for i, point := range points {
				w.takeover(t, lose, point, i)
			}
			w.judge(t)
			w.oneAfterTheOther(t)
		})
	}
}

// newTakeover builds a world with a kind of leases, and a function that deletes all of them.
func newTakeover(t *testing.T, leases string) (w *world, lose func()) {
	t.Helper()
	var cache *server.Redis
	var flags []string
	if leases == "redis" {
		cache = newRedis(t)
		flags = []string{"--redis=" + cache.URL(), "--lane-leases=redis"}
	}
	w = newWorld(t, kinds()[1], inPostgres, flags...)
	return w, func() {
		t.Helper()
		if cache != nil {
			check(t, cache.Kill())
			check(t, cache.Start(w.ctx))
		}
		db, err := pgx.Connect(w.ctx, w.database())
		check(t, err)
		defer db.Close(context.WithoutCancel(w.ctx)) //nolint:errcheck // read to its end
		_, err = db.Exec(w.ctx, "DELETE FROM work.leases")
		check(t, err)
	}
}

// takeover stops a holder at a point, gives its lease to another, and resumes it.
func (w *world) takeover(t *testing.T, lose func(), point string, round int) {
	t.Helper()
	for n := range 5 {
		w.ask(t, w.one(0, fmt.Sprintf("before-%d-%d", round, n)))
	}
	old := w.relayer(t)
	old.Env = []string{keys[0], "WATCHTOWER_CRASH_STOP=" + point} // one lane, whose steps are counted
	old.Args = append(without(w.flags, "--owner-lease"), "--owner-lease-ttl=1m", "--owner-lease-renew=20s")
	check(t, old.Launch())
	w.becomes(t, "the holder stands still at "+point, func() bool { return stopped(t, old) })

	before := w.head(t)
	lose()
	young := w.relayer(t)
	young.Env = keys[:1]
	check(t, young.Start(w.ctx))
	w.opened(t, before)
	check(t, old.Signal(syscall.SIGCONT))
	w.becomes(t, "the former holder is told that it is none, at "+point, func() bool {
		return fenced(old) || point == opening && dismissed(old)
	})
	for n := range 5 {
		w.ask(t, w.one(0, fmt.Sprintf("after-%d-%d", round, n)))
	}
	w.done(t, young)
	check(t, old.Stop(w.ctx))
	check(t, young.Stop(w.ctx))
}

// head is the position of the log's end.
func (w *world) head(t *testing.T) eventlog.Position {
	t.Helper()
	head, err := w.feed(t).Log.Head(w.ctx)
	check(t, err)
	return head
}

// opened waits until a lane is opened after a position.
func (w *world) opened(t *testing.T, after eventlog.Position) {
	t.Helper()
	for batch, err := range w.feed(t).Log.Subscribe(w.ctx, after, eventlog.Filter{Names: []string{"lane.opened."}}, 1) {
		check(t, err)
		if len(batch.Events) > 0 {
			return
		}
	}
}

// stopped reports whether a process is stopped.
func stopped(t *testing.T, s *rig.Service) bool {
	t.Helper()
	select {
	case <-s.Ended():
		t.Fatalf("it has ended:\n%s", s.Tail())
	default:
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	check(t, err)
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return state[0] == 'T'
}

// fenced reports whether a relayer has logged that a lane's log refused it.
func fenced(s *rig.Service) bool {
	return saysOfLane(s, "work under a lease failed", string(lane.ErrFenced))
}

// opening is before a lane's first append, which opens it. A holder stopped there has nothing in
// flight, and may have no write that could be refused.
const opening = "lane.append.before:1"

// dismissed reports whether a process has found that another has its lane's lease.
func dismissed(s *rig.Service) bool {
	return saysOfLane(s, "lease lost to another replica", "")
}

// saysOfLane reports whether a process has logged a message and error about a lane's lease.
func saysOfLane(s *rig.Service, message, err string) bool {
	for line := range s.Logged(message) {
		var entry struct{ Lease, Err string }
		if json.Unmarshal(line, &entry) == nil && strings.HasPrefix(entry.Lease, "relayer-lane-") && strings.Contains(entry.Err, err) {
			return true
		}
	}
	return false
}

// oneAfterTheOther checks that all events of a lane's stream between two openings are from the
// holder that opened it.
func (w *world) oneAfterTheOther(t *testing.T) {
	t.Helper()
	token, opened := map[string]float64{}, 0
	for _, r := range w.events(t) {
		if !strings.HasPrefix(string(r.Stream), lane.StreamPrefix) {
			continue
		}
		var fact struct{ Token float64 }
		check(t, json.Unmarshal(r.Data, &fact))
		before := token[string(r.Stream)]
		if strings.HasPrefix(r.Name, "lane.opened.") {
			opened++
			token[string(r.Stream)], before = fact.Token, before+1
		}
		if fact.Token != before {
			t.Errorf("%s, %s at %d bears token %v, not %v", r.Stream, r.Name, r.Position, fact.Token, before)
		}
	}
	t.Logf("lanes were opened %d times", opened)
}

// The holder of three lanes is frozen during its work, for longer than its leases, and thawed;
// then the process that took over is, and so on. Expected: the running process goes on, and each
// payment is made once.
func TestFrozenHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[0], inPostgres, "--redis="+newRedis(t).URL(), "--lane-leases=redis")
	first, second := w.relayer(t), w.relayer(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	awake, frozen := first, second
	for round := range 4 {
		awake, frozen = frozen, awake
		var requests []intent.Request
		for n := range 12 {
			requests = append(requests, w.pool(fmt.Sprintf("pool-%d-%d", round, n)), w.one(n%3, fmt.Sprintf("one-%d-%d", round, n)))
		}
		w.create(t, []client{w.client(t, awake)}, requests...)
		check(t, frozen.Signal(syscall.SIGSTOP))
		w.done(t, awake)
		check(t, frozen.Signal(syscall.SIGCONT))
	}
	check(t, first.Stop(w.ctx))
	check(t, second.Stop(w.ctx))
	w.judge(t)
	w.oneAfterTheOther(t)
}
