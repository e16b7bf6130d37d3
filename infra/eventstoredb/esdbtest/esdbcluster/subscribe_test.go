package esdbcluster_test

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// isHappened passes the events that tests append.
func isHappened(r *esdbcluster.Record) bool { return r.Kind == "happened" }

// Row 5: a live subscription that does not keep up is dropped, or catches up again.
func TestSlow(t *testing.T) {
	const limit = 3
	for _, resume := range []bool{false, true} {
		c, _ := begun(esdbcluster.Settings{SlowLimit: limit, ResumeSlow: resume, StatsEvery: 1}, 1)
		for n := range 2 * limit {
			c.Append(1, true, "s", at(n), event(n))
		}
		sub, err := c.Subscribe(1, true, 0, isHappened)
		if err != nil {
			t.Fatal(err)
		}
		if n := caughtUp(t, sub); n < 2*limit {
			t.Errorf("%d records until it has caught up", n)
		}
		for n := range limit {
			c.Append(1, true, "s", at(2*limit+n), event(2*limit+n))
		}
		if news, err := sub.Next(10); err != nil || len(news.Records) != 1 {
			t.Fatalf("%+v, %v", news, err)
		}
		more := c.Append(1, true, "s", at(3*limit), event(3*limit))
		wants(t, "more", more, "9")
		if met := c.Met(); met.SlowDrops+met.SlowResumes != 0 {
			t.Errorf("dropped with %d events: %+v", limit, met)
		}
		c.Append(1, true, "s", at(3*limit+1), event(3*limit+1))
		switch met := c.Met(); {
		case resume:
			if n := caughtUp(t, sub); n < limit || met.SlowResumes != 1 {
				t.Errorf("%d records until it has caught up again: %+v", n, met)
			}
		default:
			if _, err := sub.Next(10); !errors.Is(err, esdbcluster.ErrSlow) || met.SlowDrops != 1 {
				t.Errorf("%v, %+v", err, met)
			}
		}
	}
}

// A subscription outlives the resignation of its node, and goes on there. It ends with
// its node.
func TestSubscriptionOfFollower(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, FollowerLag: steady(10 * ms), Election: steady(50 * ms)}, 1)
	sub, err := c.Subscribe(1, true, 0, isHappened)
	if err != nil {
		t.Fatal(err)
	}
	caughtUp(t, sub)
	c.Resign(1)
	if _, err := c.Subscribe(1, false, 0, isHappened); !errors.Is(err, esdbcluster.ErrNotReady) {
		t.Errorf("begun during an election: %v", err)
	}
	a.run(60 * ms)
	for { // the next leader's own event
		news, err := sub.Next(1)
		if err != nil {
			t.Fatal(err)
		}
		if news.More != nil {
			break
		}
	}
	wants(t, "append", c.Append(leader(c), true, "s", at(0), event(1)), "0")
	a.run(9 * ms)
	news, err := sub.Next(1)
	if err != nil || news.More == nil {
		t.Fatalf("before the lag is over: %+v, %v", news, err)
	}
	a.run(ms)
	<-news.More
	if news, err := sub.Next(1); err != nil || len(news.Records) != 1 || news.Records[0].Stream != "s" {
		t.Errorf("%+v, %v", news, err)
	}
	c.Kill(1)
	if _, err := sub.Next(1); !errors.Is(err, esdbcluster.ErrGone) {
		t.Errorf("after the kill: %v", err)
	}
}

// A subscription that begins beyond the end of its node's log gets the records from there
// on.
func TestSubscribeBeyond(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, FollowerLag: steady(10 * ms)}, 1)
	first := c.Append(1, true, "s", at(0), event(1))
	last, err := first.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(2, false, last.Position+1, isHappened)
	if err != nil {
		t.Fatal(err)
	}
	if n := caughtUp(t, sub); n != 0 {
		t.Errorf("%d records", n)
	}
	c.Append(1, true, "s", at(1), event(2))
	a.run(20 * ms)
	if news, err := sub.Next(10); err != nil || len(news.Records) != 1 || news.Records[0].Revision != 1 {
		t.Errorf("%+v, %v", news, err)
	}
}
