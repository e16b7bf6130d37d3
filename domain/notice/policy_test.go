package notice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

var (
	start  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	failed = notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500}
	good   = notice.Outcome{Class: notice.Delivered, Status: 204}
)

func queued(seq uint64) notice.Notice {
	return notice.Notice{Key: notice.Key{Endpoint: notice.EndpointID{1}, Intent: chain.IntentID{2}, Seq: seq}, Stage: notice.Queued, NextAt: start}
}

// An endpoint that never answers is retried over days. Each pause is the listed one or up to a
// tenth longer, and the times are reproducible.
func TestDaysOfRetries(t *testing.T) {
	p := notice.DefaultPolicy()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	run := func(seq uint64) (times []time.Time) {
		n, e := queued(seq), notice.Endpoint{}
		for n.Stage == notice.Queued {
			at := n.NextAt
			times = append(times, at)
			n, e = p.After(n, e, failed, at)
		}
		if n.Stage != notice.Dead || n.Attempts != len(p.Pauses)+1 || e.Disabled != notice.Enabled || e.Failures != n.Attempts {
			t.Errorf("ended as %+v at %+v", n, e)
		}
		return times
	}
	times := run(1)
	if diff := cmp.Diff(times, run(1)); diff != "" {
		t.Error("the same notice twice:", diff)
	}
	other := run(2)
	for i, listed := range p.Pauses {
		pause := times[i+1].Sub(times[i])
		if pause < listed || pause > listed+listed/10 {
			t.Errorf("pause %d is %s, listed are %s", i, pause, listed)
		}
		if pause == other[i+1].Sub(other[i]) {
			t.Errorf("two notices have the same pause %d, %s", i, pause)
		}
	}
	if took := times[len(times)-1].Sub(start); took < 75*time.Hour || took > 84*time.Hour {
		t.Errorf("the last attempt came after %s", took)
	}
}

func TestAfter(t *testing.T) {
	p := notice.DefaultPolicy()
	p.Jitter = 0
	for _, c := range []struct {
		name  string
		o     notice.Outcome
		stage notice.Stage
		pause time.Duration
		e     notice.Endpoint
	}{
		{"delivered", good, notice.Settled, 0, notice.Endpoint{}},
		{"failed", failed, notice.Queued, 5 * time.Second, notice.Endpoint{Failures: 1, FailingSince: start}},
		{"unknown", notice.Outcome{Class: notice.Unknown, Cause: notice.Cut}, notice.Queued, 5 * time.Second, notice.Endpoint{Failures: 1, FailingSince: start}},
		{"gone", notice.Outcome{Class: notice.Gone, Status: 410}, notice.Dead, 0, notice.Endpoint{Failures: 1, FailingSince: start, Disabled: notice.SaidGone, DisabledAt: start}},
		{"later", notice.Outcome{Class: notice.Later, Status: 429, RetryAfter: time.Minute}, notice.Queued, time.Minute, notice.Endpoint{Failures: 1, FailingSince: start, PausedUntil: start.Add(time.Minute)}},
		{"later, soon", notice.Outcome{Class: notice.Later, Status: 429, RetryAfter: time.Second}, notice.Queued, 5 * time.Second, notice.Endpoint{Failures: 1, FailingSince: start, PausedUntil: start.Add(time.Second)}},
		{"later, in a year", notice.Outcome{Class: notice.Later, Status: 503, RetryAfter: 365 * 24 * time.Hour}, notice.Queued, 24 * time.Hour, notice.Endpoint{Failures: 1, FailingSince: start, PausedUntil: start.Add(24 * time.Hour)}},
		{"unfit", notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}, notice.Dead, 0, notice.Endpoint{}},
	} {
		n, e := p.After(queued(1), notice.Endpoint{}, c.o, start)
		want := queued(1)
		want.Stage, want.Attempts, want.NextAt, want.Last, want.LastAt = c.stage, 1, start.Add(c.pause), c.o, start
		want.Last.RetryAfter = 0
		c.e.Attempts, c.e.Last, c.e.LastAt = 1, want.Last, start
		if c.o.Class == notice.Delivered {
			c.e.Delivered = 1
		}
		if diff := cmp.Diff(want, n); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.e, e); diff != "" {
			t.Errorf("%s: the endpoint: %s", c.name, diff)
		}
	}
}

// A failing endpoint is paused for longer and longer and disabled after days; any success resets
// it.
func TestEndpointFails(t *testing.T) {
	p := notice.DefaultPolicy()
	var e notice.Endpoint
	at := start
	var pauses []time.Duration
	for seq := range uint64(13) {
		_, e = p.After(queued(seq), e, failed, at)
		pause := max(e.PausedUntil.Sub(at), 0)
		pauses = append(pauses, pause)
		at = at.Add(pause)
	}
	s, m := time.Second, time.Minute
	if diff := cmp.Diff([]time.Duration{0, 0, 0, 0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 10 * m, 10 * m, 10 * m}, pauses); diff != "" {
		t.Error(diff)
	}
	if _, healed := p.After(queued(1), e, good, at); healed != (notice.Endpoint{Attempts: 14, Delivered: 1, Last: good, LastAt: at}) {
		t.Errorf("after a success: %+v", healed)
	}
	e.Failures = 1 << 40
	for _, least := range []time.Duration{1, p.BreakMin, 1<<34 + 1, p.BreakMax} { // the third value overflows to a small one when doubled
		p.BreakMin = least
		if _, e := p.After(queued(1), e, failed, at); !e.PausedUntil.Equal(at.Add(p.BreakMax)) {
			t.Errorf("after very many failures it is paused until %s, at first it was for %s", e.PausedUntil, least)
		}
	}
	for _, c := range []struct {
		since time.Duration
		want  notice.Reason
	}{{p.DisableAfter - 1, notice.Enabled}, {p.DisableAfter, notice.FailedLong}} {
		n, e := p.After(queued(1), notice.Endpoint{Failures: 9, FailingSince: start}, failed, start.Add(c.since))
		if e.Disabled != c.want || (n.Stage == notice.Dead) != (c.want != notice.Enabled) {
			t.Errorf("after %s: %q, the notice is %s", c.since, e.Disabled, n.Stage)
		}
	}
	off := notice.Endpoint{URL: "u", Failures: 3}.Disable(notice.Operator, start).Disable(notice.SaidGone, at)
	if off.Disabled != notice.Operator || off.DisabledAt != start || off.Enable() != (notice.Endpoint{URL: "u"}) {
		t.Errorf("%+v", off)
	}
}

// For any outcomes, a notice ends. No attempt is due before the one before it, or later than the
// longest pause.
func TestEveryNoticeEnds(t *testing.T) {
	outcomes := []notice.Outcome{failed, {Class: notice.Unknown}, {Class: notice.Later, RetryAfter: 48 * time.Hour}, {Class: notice.Later, RetryAfter: -1}}
	rapid.Check(t, func(t *rapid.T) {
		p := notice.DefaultPolicy()
		p.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
		n, e, at := queued(rapid.Uint64Range(1, 1<<62).Draw(t, "seq")), notice.Endpoint{}, start
		for range len(p.Pauses) + 1 {
			n, e = p.After(n, e, rapid.SampledFrom(outcomes).Draw(t, "outcome"), at)
			if n.Stage != notice.Queued {
				break
			}
			if n.NextAt.Before(at.Add(p.Pauses[0])) || n.NextAt.After(at.Add(2*p.RetryAfterMax)) || e.PausedUntil.After(at.Add(p.RetryAfterMax)) && n.Attempts == 1 {
				t.Fatalf("at %s: %+v, %+v", at, n, e)
			}
			at = n.NextAt
		}
		if n.Stage != notice.Dead {
			t.Fatalf("%+v", n)
		}
	})
}

func TestNames(t *testing.T) {
	seen := map[notice.EndpointID]string{}
	for _, c := range [][2]string{{"", "ab"}, {"a", "b"}, {"ab", ""}, {"b", "a"}, {"1", ":a"}, {"", "1:1:a"}} {
		id := notice.EndpointOf(c[0], c[1])
		if was, there := seen[id]; there {
			t.Errorf("%q and %s are one", c, was)
		}
		seen[id] = fmt.Sprintf("%q", c)
	}
	if got := queued(7).MessageID(); got != "msg_02000000000000000000000000000000_7" {
		t.Error(got)
	}
}

func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(*notice.Policy){
		"no pause":             func(p *notice.Policy) { p.Pauses[0] = 0 },
		"a long pause":         func(p *notice.Policy) { p.Pauses[0] = notice.PauseMax + 1 },
		"many pauses":          func(p *notice.Policy) { p.Pauses = make([]time.Duration, notice.PausesMax+1) },
		"jitter":               func(p *notice.Policy) { p.Jitter = 1.1 },
		"no attempts":          func(p *notice.Policy) { p.Concurrency = 0 },
		"break":                func(p *notice.Policy) { p.BreakMax = p.BreakMin - 1 },
		"disabled at once":     func(p *notice.Policy) { p.DisableAfter = 0 },
		"any pause on request": func(p *notice.Policy) { p.RetryAfterMax = notice.PauseMax + 1 },
	} {
		p := notice.DefaultPolicy()
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
