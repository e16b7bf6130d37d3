package eventstoredb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// faster divides a real server's times, so that the contract takes seconds.
const faster = 10

// hard is a cluster of three that is as hard as a real one. The test stops it.
func hard(t testing.TB) *esdbtest.Cluster {
	t.Helper()
	return clusterOf(t, esdbcluster.Hard(3).Faster(faster))
}

func clusterOf(t testing.TB, s esdbcluster.Settings) *esdbtest.Cluster {
	t.Helper()
	c, err := esdbtest.NewCluster(esdbtest.Options{Cluster: s})
	must(t, err)
	t.Cleanup(c.Stop)
	return c
}

// leader is the number of the node that leads; it waits for an election.
func leader(t testing.TB, c *esdbtest.Cluster) int {
	t.Helper()
	for ctx := soon(t); ctx.Err() == nil; {
		for _, m := range c.Model.State() {
			if m.State == esdbcluster.Leader {
				return m.Node
			}
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("no leader was elected")
	return 0
}

// TestStoreOnCluster is the contract on a cluster of three with everything that makes a
// real server harder than a kind one.
func TestStoreOnCluster(t *testing.T) {
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return open(t, hard(t).URL(), eventstoredb.Options{}).opened()
	})
}

// unrest changes the cluster's leader every so often, until ctx ends: by turns a resigned
// leader, a killed leader and a killed follower, which starts again.
func unrest(ctx context.Context, t *testing.T, c *esdbtest.Cluster, every time.Duration) {
	draw := rand.New(rand.NewPCG(7, 7))
	for turn := 0; ctx.Err() == nil; turn++ {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		number := leader(t, c)
		switch turn % 3 {
		case 0:
			_ = c.Resign(number) // it may have been replaced
			continue
		case 1:
			number = number%3 + 1
		}
		c.Nodes[number-1].Stop()
		select {
		case <-time.After(time.Duration(draw.Int64N(int64(every)))):
		case <-ctx.Done():
		}
		if err := c.Nodes[number-1].Start(); err != nil {
			t.Error(err)
		}
	}
}

// TestLinearOnCluster makes the contract's history while three in ten appends lose their
// request or their reply, leaders resign and nodes are killed.
func TestLinearOnCluster(t *testing.T) {
	c := hard(t)
	l := open(t, c.URL(), eventstoredb.Options{}).log
	for i, n := range c.Nodes {
		n.Trouble(esdbtest.Trouble{Seed: uint64(i), LoseReplies: .15, LoseAppends: .15, CutReads: .05})
	}
	ctx, rest := context.WithCancel(t.Context())
	var disturbed sync.WaitGroup
	disturbed.Go(func() { unrest(ctx, t, c, 600*time.Millisecond) })
	crowd := storetest.SmallCrowd(3)
	crowd.Enough = func() bool {
		m := c.Model.Met()
		return m.Elections >= 10 && m.DroppedRepeats > 0 && m.ConflictsAhead > 0
	}
	storetest.LinearStreams(t, l, crowd)
	rest()
	disturbed.Wait()
	if m := c.Model.Met(); m.Elections < 10 || m.DroppedRepeats == 0 || m.ConflictsAhead == 0 || m.NotReady == 0 {
		t.Errorf("too little trouble for a verdict: %+v", m)
	}
}

// While leaders change, every append is a success within its own time limit, and each
// subscription gets every event once and in order.
func TestLeaderChangesAreDelays(t *testing.T) {
	c := hard(t)
	l := open(t, c.URL(), eventstoredb.Options{}).log
	ctx, rest := context.WithCancel(t.Context())
	var disturbed, readers sync.WaitGroup
	disturbed.Go(func() { unrest(ctx, t, c, 500*time.Millisecond) })
	const writers, each = 8, 90
	for range 5 {
		readers.Go(func() {
			versions, left := map[eventlog.Stream]eventlog.Version{}, writers*each
			for b, err := range l.Subscribe(soon(t), 0, eventlog.Filter{}, 50) {
				if err != nil {
					t.Error("a subscription ended:", err)
					return
				}
				for _, e := range b.Events {
					if e.Version != versions[e.Stream]+1 {
						t.Errorf("%s: version %d after %d", e.Stream, e.Version, versions[e.Stream])
					}
					versions[e.Stream]++
					left--
				}
				if left <= 0 {
					return
				}
			}
		})
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			stream := eventlog.Stream(fmt.Sprint("w-", w))
			for v := range eventlog.Version(each) {
				call, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				a, err := l.Append(call, stream, v, happened(stream, v, 1)...)
				cancel()
				if err != nil || a.Version != v+1 || a.Repeated {
					t.Errorf("append %d to %s: %+v, %v", v, stream, a, err)
					return
				}
				<-time.After(30 * time.Millisecond)
			}
		})
	}
	all.Wait()
	readers.Wait()
	rest()
	disturbed.Wait()
	if m := c.Model.Met(); m.Elections < 3 {
		t.Errorf("too little trouble for a verdict: %+v", m)
	}
}

// A URL of one follower leads to the leader, wherever that goes.
func TestFollowersURL(t *testing.T) {
	c := hard(t)
	l := open(t, c.Nodes[1].URL(), eventstoredb.Options{}).log
	stands(t, l, "one", 0, 1)
	must(t, c.Resign(leader(t, c)))
	stands(t, l, "one", 1, 1)
	if m := c.Model.Met(); m.Forwarded > 0 || m.StaleReads > 0 {
		t.Errorf("a follower answered for the leader: %+v", m)
	}
}

// An error names the leader's address, when only a follower can be reached.
func TestLeaderOutOfReach(t *testing.T) {
	c := hard(t)
	number := leader(t, c)
	address := c.Nodes[number-1].Address()
	c.Nodes[number-1].Stop()
	c.Model.Start(number) // it leads, and nobody can connect to it
	c.Model.Lead(number)
	_, err := eventstoredb.Open(soon(t), c.Nodes[number%3].URL(), eventstoredb.Options{Patience: time.Second})
	if err == nil || !eventstoredb.Transient(err) || !strings.Contains(err.Error(), address) {
		t.Errorf("%v does not name %s", err, address)
	}
}

// A conflict with a write that nobody can read yet is passed on when it can be read; if
// the write is lost with its leader, the append stands.
func TestConflictAhead(t *testing.T) {
	for name, lost := range map[string]bool{"committed later": false, "lost with its leader": true} {
		t.Run(name, func(t *testing.T) {
			s := esdbcluster.Hard(3).Faster(faster)
			s.CommitDelay = esdbcluster.Range{Least: 300 * time.Millisecond}
			s.CommitTimeout = time.Second
			c := clusterOf(t, s)
			l := open(t, c.URL(), eventstoredb.Options{}).log
			stands(t, l, "s", 0, 1)
			number := leader(t, c)
			c.Model.Append(number, true, "s", esdbcluster.Expectation{}, []esdbcluster.Proposal{{
				ID: [16]byte{1}, Kind: "test.happened.v1", Content: "application/json", Data: []byte("1"), Meta: []byte("{}"),
			}})
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				a, err := l.Append(soon(t), "s", 1, happened("s", 1, 1)...)
				var conflict *eventlog.ConflictError
				switch {
				case lost && (err != nil || a.Version != 2):
					t.Errorf("the append answered %+v, %v", a, err)
				case !lost && (!errors.As(err, &conflict) || conflict.Actual != 2 || read(t, l, "s") != 2):
					t.Errorf("the append answered %v, and %d events stand", err, read(t, l, "s"))
				}
			}()
			for c.Model.Met().ConflictsAhead == 0 {
				<-time.After(time.Millisecond)
			}
			if lost {
				c.Nodes[number-1].Stop()
			}
			<-answered
			if m := c.Model.Met(); lost != (m.Vanished > 0) {
				t.Errorf("%d writes vanished", m.Vanished)
			}
		})
	}
}

// A repeat that the server drops without an answer costs no commit timeout: the events are
// found beside it. The connection of the late answer is kept, as it gives a sign of life.
func TestDroppedRepeat(t *testing.T) {
	s := esdbcluster.Hard(1)
	s.CommitDelay, s.CommitTimeout = esdbcluster.Range{Least: 400 * time.Millisecond}, 20*time.Second
	c := clusterOf(t, s)
	l := open(t, c.URL(), eventstoredb.Options{CallLimit: 100 * time.Millisecond}).log
	began := time.Now()
	a, err := l.Append(soon(t), "s", 0, happened("s", 0, 2)...)
	if err != nil || a.Version != 2 || a.Repeated || time.Since(began) > s.CommitTimeout/2 {
		t.Errorf("%+v, %v after %s", a, err, time.Since(began))
	}
	if m := c.Model.Met(); m.DroppedRepeats == 0 {
		t.Errorf("too little trouble for a verdict: %+v", m)
	}
	if n := l.Connections(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// A commit that takes longer than the server's own limit is waited for, on one connection.
func TestCommitTimeout(t *testing.T) {
	s := esdbcluster.Hard(1)
	s.CommitDelay, s.CommitTimeout = esdbcluster.Range{Least: 500 * time.Millisecond}, 100*time.Millisecond
	c := clusterOf(t, s)
	l := open(t, c.URL(), eventstoredb.Options{}).log
	for v := range eventlog.Version(4) {
		if a, err := l.Append(soon(t), "s", v, happened("s", v, 1)...); err != nil || a.Version != v+1 {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if m := c.Model.Met(); m.CommitTimeouts < 4 {
		t.Errorf("too little trouble for a verdict: %+v", m)
	}
	if n := l.Connections(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// A dozen slow readers share one subscription, which keeps up: the server drops nobody.
func TestSlowReadersShareASubscription(t *testing.T) {
	s := esdbcluster.Hard(1)
	s.CommitDelay = esdbcluster.Range{}
	c := clusterOf(t, s)
	l := open(t, c.URL(), eventstoredb.Options{}).log
	stands(t, l, "first", 0, 1)
	const n = 1500
	var caughtUp, readers sync.WaitGroup
	caughtUp.Add(12)
	for range 12 {
		readers.Go(func() {
			live, left := sync.OnceFunc(caughtUp.Done), n+1
			for b, err := range l.Subscribe(soon(t), 0, eventlog.Filter{}, 20) {
				must(t, err)
				if b.Live {
					live()
				}
				if left -= len(b.Events); left == 0 {
					return
				}
				<-time.After(5 * time.Millisecond) // at work on it
			}
		})
	}
	caughtUp.Wait()
	for v := range eventlog.Version(n) {
		stands(t, l, "s", v, 1)
	}
	readers.Wait()
	if m, met := c.Model.Met(), c.Nodes[0].Met(); m.SlowDrops > 0 || met.Subscriptions != 1 {
		t.Errorf("%d subscriptions, %d of them dropped", met.Subscriptions, m.SlowDrops)
	}
}

// A subscription that the server drops as too slow, or takes back to catching up, misses
// and repeats nothing.
func TestDroppedAsTooSlow(t *testing.T) {
	for name, resumes := range map[string]bool{"23.10": false, "24.6": true} {
		t.Run(name, func(t *testing.T) {
			s := esdbcluster.Hard(1)
			s.CommitDelay, s.ResumeSlow, s.SlowLimit = esdbcluster.Range{}, resumes, 3
			c := clusterOf(t, s)
			l := open(t, c.URL(), eventstoredb.Options{}).log
			stands(t, l, "s", 0, 1)
			version, stood := eventlog.Version(0), eventlog.Version(1)
			for b, err := range l.Subscribe(soon(t), 0, eventlog.Filter{}, 50) {
				must(t, err)
				for _, e := range b.Events {
					if version++; e.Version != version {
						t.Fatalf("version %d comes where %d has to", e.Version, version)
					}
				}
				switch {
				case !b.Live || version < stood:
					continue
				case version > 600:
					goto enough
				}
				stands(t, l, "s", version, 40) // more at once than the server keeps for a subscriber
				stood += 40
			}
		enough:
			if m := c.Model.Met(); m.SlowDrops+m.SlowResumes == 0 {
				t.Errorf("too little trouble for a verdict: %+v", m)
			}
			if n := l.Connections(); n != 1 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

// read counts the events of a stream.
func read(t testing.TB, l *eventstoredb.Log, stream eventlog.Stream) (n eventlog.Version) {
	t.Helper()
	for _, err := range l.ReadStream(soon(t), stream, 0) {
		must(t, err)
		n++
	}
	return n
}

// A repeat of an append that is not committed yet is dropped by the server. Its events are
// found once they are committed, long before the server's own time limit for the repeat.
func TestRepeatIsFoundBesideItsSend(t *testing.T) {
	s := esdbcluster.Hard(3)
	s.CommitDelay, s.CommitTimeout = esdbcluster.Range{Least: 300 * time.Millisecond}, time.Minute
	log := open(t, clusterOf(t, s).URL(), eventstoredb.Options{}).log
	e := eventlog.Event{ID: eventlog.ID{1}, Name: "test.happened.v1", Data: []byte("{}")}
	short, cancel := context.WithTimeout(soon(t), 50*time.Millisecond)
	defer cancel()
	if _, err := log.Append(short, "one", 0, e); !errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("an append that was cut short answers %v", err)
	}
	began := time.Now()
	a, err := log.Append(soon(t), "one", 0, e)
	if err != nil || a.Version != 1 || !a.Repeated {
		t.Errorf("the repeat answers %+v, %v", a, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the repeat took %v", took)
	}
}
