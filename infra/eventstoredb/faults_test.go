package eventstoredb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// soon bounds a test's waiting.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// happened are events whose ids follow from stream and version.
func happened(stream eventlog.Stream, after eventlog.Version, n int) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = eventlog.Event{
			ID: eventlog.DeriveID(stream, eventlog.ID{1}, int(after)+i), Name: "test.happened.v1",
			Data: fmt.Appendf(nil, `{"n":%d}`, int(after)+i),
		}
	}
	return events
}

// stands appends until the answer is plain, as callers do.
func stands(t testing.TB, l *eventstoredb.Log, stream eventlog.Stream, after eventlog.Version, n int) eventlog.Appended {
	t.Helper()
	ctx := soon(t)
	for {
		a, err := l.Append(ctx, stream, after, happened(stream, after, n)...)
		if err == nil {
			return a
		}
		if !errors.Is(err, eventlog.ErrUnknown) && !eventstoredb.Transient(err) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// An append whose reply is lost is found to stand, by the call that sent it; the same
// append again is recognized.
func TestLostReply(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	server.LoseReplies(1)
	events := happened("one", 0, 3)
	a, err := l.Append(soon(t), "one", 0, events...)
	if err != nil || a.Repeated || a.Version != 3 {
		t.Fatalf("a lost reply: %+v, %v", a, err)
	}
	a, err = l.Append(soon(t), "one", 0, events...)
	if err != nil || !a.Repeated || a.Version != 3 {
		t.Fatalf("the same again: %+v, %v", a, err)
	}
	if n := server.Data().Events(); n != 3 {
		t.Errorf("%d events stand", n)
	}
}

// While the server is away, no call waits past the end of its context, or longer than the log's
// patience. When the server is back, all calls succeed with the same log.
func TestServerAway(t *testing.T) {
	server := double(t, esdbtest.Options{})
	const patience = time.Second
	l := open(t, server.URL(), eventstoredb.Options{Patience: patience, Limit: 3 * patience}).log
	stands(t, l, "one", 0, 1)
	var sub sync.WaitGroup
	seen := make(chan eventlog.Recorded)
	ctx, stop := context.WithCancel(soon(t))
	sub.Go(func() {
		for b, err := range l.Subscribe(ctx, 0, eventlog.Filter{}, 10) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			for _, e := range b.Events {
				if e.Stream != "one" {
					continue // of an append that nobody heard of, and that stands all the same
				}
				select {
				case seen <- e:
				case <-ctx.Done():
				}
			}
		}
	})
	defer func() { stop(); sub.Wait() }()
	<-seen
	for round := range 3 {
		server.Stop()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				short, cancel := context.WithTimeout(soon(t), 100*time.Millisecond)
				defer cancel()
				began := time.Now()
				_, err := l.Append(short, eventlog.Stream(fmt.Sprintf("lost-%d-%d", round, i)), 0, happened("lost", 0, 1)...)
				if err == nil || time.Since(began) > 5*time.Second {
					t.Errorf("an append to nobody answered %v after %s", err, time.Since(began))
				}
			})
		}
		callers.Wait()
		began := time.Now()
		_, err := l.Head(soon(t))
		if err == nil || !eventstoredb.Transient(err) || time.Since(began) > 20*patience {
			t.Errorf("a read of nobody answered %v after %s", err, time.Since(began))
		}
		must(t, server.Start())
		a := stands(t, l, "one", eventlog.Version(round+1), 1)
		if e := <-seen; e.Position != a.Position {
			t.Errorf("the subscriber was shown %d, the append stands at %d", e.Position, a.Position)
		}
	}
}

// TestLinearInTrouble makes the contract's history while replies, appends and reads are
// lost, and answers are late.
func TestLinearInTrouble(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	server.Trouble(esdbtest.Trouble{Seed: 1, LoseReplies: .05, LoseAppends: .05, CutReads: .05, Delays: .1, Delay: 5 * time.Millisecond})
	storetest.LinearStreams(t, l, storetest.SmallCrowd(1))
	if met := server.Met(); met.LostReplies < 5 || met.LostAppends < 5 || met.CutReads < 5 || met.Delays < 5 {
		t.Errorf("too little trouble for a verdict: %+v", met)
	}
	server.Trouble(esdbtest.Trouble{})
}

// Subscriptions that are cut again and again show every event once and in order.
func TestSubscriptionsCut(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	server.Trouble(esdbtest.Trouble{Seed: 2, CutReads: .7})
	const n = 300
	var writing sync.WaitGroup
	writing.Go(func() {
		for v := range n {
			stands(t, l, eventlog.Stream(fmt.Sprint("s-", v%3)), eventlog.Version(v/3), 1)
		}
	})
	defer writing.Wait()
	for _, f := range []eventlog.Filter{{}, {Streams: []string{"s-1"}}, {Names: []string{"test.h"}}} {
		want := n
		if f.Streams != nil {
			want = n / 3
		}
		var at eventlog.Position
		versions := map[eventlog.Stream]eventlog.Version{}
		for b, err := range l.Subscribe(soon(t), 0, f, 7) {
			must(t, err)
			for _, e := range b.Events {
				if e.Position <= at || e.Version != versions[e.Stream]+1 {
					t.Fatalf("%s version %d at %d came after version %d and %d", e.Stream, e.Version, e.Position, versions[e.Stream], at)
				}
				at, versions[e.Stream] = e.Position, e.Version
				want--
			}
			if want == 0 {
				break
			}
		}
	}
	if met := server.Met(); met.CutReads < 20 {
		t.Errorf("too little trouble for a verdict: %+v", met)
	}
}

// An event that came just before its subscription was cut is kept.
func TestEventBeforeACut(t *testing.T) {
	l := open(t, double(t, esdbtest.Options{}).URL(), eventstoredb.Options{}).log
	e := &esdb.RecordedEvent{StreamID: "s", EventType: "test.happened.v1", Data: []byte(`{}`), Position: esdb.Position{Commit: 7, Prepare: 7}}
	b, err := l.Interrupted(e, io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(b.Events) != 1 || b.Next != 7 {
		t.Errorf("%+v, %v", b, err)
	}
}

// A node that does not lead names the leader, and appends go there. From a list of members
// the leader is found at once, and again after it changes.
func TestLeaderMoves(t *testing.T) {
	nodes := cluster(t, esdbcluster.Settings{Nodes: 3}).Nodes
	follower := open(t, nodes[1].URL(), eventstoredb.Options{}).log
	if a := stands(t, follower, "one", 0, 1); a.Version != 1 || nodes[1].Met().Strays == 0 {
		t.Errorf("appended through a follower: %+v, and it was asked %d times", a, nodes[1].Met().Strays)
	}
	seeds := fmt.Sprintf("esdb://%s,%s?tls=false", nodes[1].Address(), nodes[2].Address())
	member := open(t, seeds, eventstoredb.Options{}).log
	before := nodes[1].Met().Strays + nodes[2].Met().Strays
	stands(t, member, "two", 0, 1)
	if strays := nodes[1].Met().Strays + nodes[2].Met().Strays; strays != before {
		t.Errorf("appends went astray %d times", strays-before)
	}
	for i, l := range []*eventstoredb.Log{follower, member} {
		esdbtest.Lead(nodes[2])
		stands(t, l, "moved", eventlog.Version(2*i), 1)
		nodes[2].Stop()
		esdbtest.Lead(nodes[1])
		stands(t, l, "moved", eventlog.Version(2*i+1), 1)
		must(t, nodes[2].Start())
	}
}

// Servers before 23.10 do not say that a subscription has caught up.
func TestSilentServer(t *testing.T) {
	l := open(t, double(t, esdbtest.Options{Silent: true}).URL(), eventstoredb.Options{}).log
	for v := range 20 {
		stands(t, l, eventlog.Stream(fmt.Sprint("s-", v)), 0, 40)
	}
	head, err := l.Head(soon(t))
	must(t, err)
	var batches []eventlog.Batch
	for b, err := range l.ReadAll(soon(t), 0, eventlog.Filter{Streams: []string{"nobody"}}, 10) {
		must(t, err)
		batches = append(batches, b)
	}
	if last := batches[len(batches)-1]; last.Next != head || !last.Live {
		t.Errorf("the read ended with %+v, the head is %d", last, head)
	}
}

// The log refuses an append that the server would not take. Where it does not know the server's limit
// well, the server refuses the append. The client shows the server's reason only if the server gave it
// after the append's end.
func TestAppendTooLarge(t *testing.T) {
	large := happened("one", 0, 5)
	for i := range large {
		large[i].Data = []byte(`"` + strings.Repeat("x", eventlog.MaxEventBytes-2) + `"`)
	}
	for name, c := range map[string]struct {
		server  esdbtest.Options
		options eventstoredb.Options
		fits    bool
		told    bool // for sure
	}{
		"both know":       {told: true},
		"the server's is": {server: esdbtest.Options{MaxAppendBytes: 1 << 19}, options: eventstoredb.Options{MaxAppendBytes: 1 << 24}},
		"neither's is":    {server: esdbtest.Options{MaxAppendBytes: 1 << 24}, options: eventstoredb.Options{MaxAppendBytes: 1 << 24}, fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := double(t, c.server)
			l := open(t, server.URL(), c.options).log
			_, err := l.Append(soon(t), "one", 0, large...)
			if c.fits != (err == nil) || c.told && !errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrUnknown) {
				t.Error("the large append answered", err)
			}
			if n := server.Data().Events(); c.fits != (n == len(large)) {
				t.Errorf("%d events stand", n)
			}
		})
	}
}

// Correlation and causation are where the server's own tools look for them.
func TestMetadata(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	e := happened("one", 0, 1)[0]
	e.Meta = eventlog.Meta{Correlation: eventlog.ID{1}, Causation: eventlog.ID{2}, Actor: "api", Trace: "00-1-2-01", Link: eventlog.Link{3}}
	_, err := l.Append(soon(t), "one", 0, e)
	must(t, err)
	raw := server.Data().Metadata("one", 0)
	for _, want := range []string{
		`"$correlationId":"01000000-0000-0000-0000-000000000000"`, `"$causationId":"02000000-0000-0000-0000-000000000000"`,
		`"actor":"api"`, `"trace":"00-1-2-01"`, `"link":"03000000`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	for r, err := range l.ReadStream(soon(t), "one", 0) {
		must(t, err)
		if diff := cmp.Diff(e, r.Event); diff != "" {
			t.Error(diff)
		}
	}
}

// Positions of others' events are passed over, and the head is ours.
func TestSharedServer(t *testing.T) {
	server := double(t, esdbtest.Options{})
	ours := open(t, server.URL()+"&streamPrefix=ours.", eventstoredb.Options{}).log
	theirs := open(t, server.URL()+"&streamPrefix=theirs.", eventstoredb.Options{}).log
	stands(t, theirs, "s", 0, 50)
	if at, err := ours.Head(soon(t)); err != nil || at != 0 {
		t.Errorf("the head of nothing is %d, %v", at, err)
	}
	a := stands(t, ours, "s", 0, 2)
	stands(t, theirs, "s", 50, 50)
	if at, err := ours.Head(soon(t)); err != nil || at != a.Position {
		t.Errorf("the head is %d, %v, and we appended at %d", at, err, a.Position)
	}
	again := open(t, server.URL()+"&streamPrefix=ours.", eventstoredb.Options{}).log
	n := 0
	for b, err := range again.ReadAll(soon(t), 0, eventlog.Filter{Names: []string{"test."}}, 10) {
		must(t, err)
		n += len(b.Events)
		if b.Live && b.Next != a.Position {
			t.Errorf("read up to %d", b.Next)
		}
	}
	if n != 2 {
		t.Errorf("%d events are ours, not 2", n)
	}
}
