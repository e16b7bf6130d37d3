package esdbcluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

const (
	ms            = time.Millisecond
	commitTimeout = "Operation timed out: Commit phase timeout"
	notReady      = "Server Is Not Ready"
)

// steady is a range of one duration.
func steady(d time.Duration) esdbcluster.Range { return esdbcluster.Range{Least: d, Most: d} }

// The zero settings answer each append at once.
func TestKind(t *testing.T) {
	c := esdbcluster.New(esdbcluster.Settings{})
	wants(t, "first", c.Append(1, true, "s", at(0), event(1)), "0")
	wants(t, "second", c.Append(1, true, "s", at(1), event(2)), "1")
	wants(t, "repeat", c.Append(1, true, "s", at(0), event(1)), "0")
	wants(t, "conflict", c.Append(1, true, "s", at(0), event(3)), "wrong expected version: the stream is at revision 1")
	wants(t, "no stream", c.Append(1, true, "none", at(1), event(3)), "wrong expected version: the stream does not exist")
	if n := length(c, 1, "s"); n != 2 {
		t.Errorf("%d events", n)
	}
	if diff := cmp.Diff(esdbcluster.Met{}, c.Met()); diff != "" {
		t.Error(diff)
	}
}

// A call that follows an append has its outcome, at once or when it ends.
func TestThen(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3}, 1)
	var said []string
	tell := func(last *esdbcluster.Record, err error) {
		if err == nil {
			said = append(said, last.Stream)
		} else {
			said = append(said, err.Error())
		}
	}
	c.Append(1, true, "at once", at(0), event(1)).Then(tell)
	c.SetCommitDelay(steady(10 * ms))
	c.Append(1, true, "later", at(0), event(2)).Then(tell)
	if diff := cmp.Diff([]string{"at once"}, said); diff != "" {
		t.Error(diff)
	}
	a.run(10 * ms)
	c.Append(1, true, "killed", at(0), event(3)).Then(tell)
	c.Kill(1)
	if diff := cmp.Diff([]string{"at once", "later", "the node is gone"}, said); diff != "" {
		t.Error(diff)
	}
}

// An uncommitted write is shown by no node.
func TestUncommitted(t *testing.T) {
	for _, nodes := range []int{1, 3, 5} {
		c, a := begun(esdbcluster.Settings{Nodes: nodes, CommitDelay: steady(10 * ms)}, 1)
		sub, err := c.Subscribe(1, true, 1<<62, func(*esdbcluster.Record) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		caughtUp(t, sub)
		p := c.Append(1, true, "s", at(0), event(1))
		a.run(9 * ms)
		wants(t, "before", p, "pending")
		for n := range nodes {
			if length(c, n+1, "s") != 0 {
				t.Errorf("node %d of %d shows an uncommitted write", n+1, nodes)
			}
		}
		a.run(ms)
		wants(t, "after", p, "0")
		for n := range nodes {
			if length(c, n+1, "s") != 1 {
				t.Errorf("node %d of %d does not show a committed write", n+1, nodes)
			}
		}
	}
}

// caughtUp takes all records of a subscription and returns their number.
func caughtUp(t *testing.T, s *esdbcluster.Subscription) (records int) {
	t.Helper()
	for {
		news, err := s.Next(10)
		if err != nil {
			t.Fatal(err)
		}
		if records += len(news.Records); news.CaughtUp {
			return records
		}
	}
}

// Row 1: a repeat of an uncommitted append has no answer until the commit timeout.
func TestDroppedRepeat(t *testing.T) {
	s := esdbcluster.Settings{CommitDelay: steady(10 * ms), CommitTimeout: 200 * ms}
	c, a := begun(s, 1)
	wants(t, "kind", c.Append(1, true, "s", at(0), event(1)), "pending")
	kind := c.Append(1, true, "s", at(0), event(1))
	a.run(10 * ms)
	wants(t, "kind, repeated", kind, "0")

	s.DropRepeats = true
	c, a = begun(s, 1)
	first, repeat := c.Append(1, true, "s", at(0), event(1)), c.Append(1, true, "s", at(0), event(1))
	a.run(199 * ms)
	wants(t, "original", first, "0")
	wants(t, "repeat", repeat, "pending")
	wants(t, "repeat of a committed append", c.Append(1, true, "s", at(0), event(1)), "0")
	a.run(ms)
	wants(t, "repeat", repeat, commitTimeout)
	if met := c.Met(); met.DroppedRepeats != 1 || met.CommitTimeouts != 1 || met.LateCommits != 0 {
		t.Errorf("%+v", met)
	}
}

// An append that is not committed within the timeout may commit later.
func TestLateCommit(t *testing.T) {
	c, a := begun(esdbcluster.Settings{CommitDelay: steady(300 * ms), CommitTimeout: 200 * ms}, 1)
	p := c.Append(1, true, "s", at(0), event(1))
	a.run(200 * ms)
	wants(t, "late", p, commitTimeout)
	a.run(100 * ms)
	if met := c.Met(); length(c, 1, "s") != 1 || met.LateCommits != 1 {
		t.Errorf("%+v", met)
	}
}

// Row 2: a conflict counts uncommitted writes, or waits for them.
func TestConflictAhead(t *testing.T) {
	const conflict = "wrong expected version: the stream is at revision 0"
	for _, ahead := range []bool{false, true} {
		c, a := begun(esdbcluster.Settings{CommitDelay: steady(10 * ms), ConflictsAhead: ahead}, 1)
		c.Append(1, true, "s", at(0), event(1))
		p := c.Append(1, true, "s", at(0), event(2))
		if ahead {
			wants(t, "ahead", p, conflict)
		} else {
			wants(t, "kind", p, "pending")
		}
		if n := length(c, 1, "s"); n != 0 {
			t.Errorf("%d events are shown", n)
		}
		a.run(10 * ms)
		wants(t, "in the end", p, conflict)
	}
}

// Row 3 and 7: a follower shows its own log, and forwards appends or names the leader.
func TestFollower(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, FollowerLag: steady(50 * ms), Forward: true}, 1)
	wants(t, "forwarded", c.Append(2, false, "s", at(0), event(1)), "0")
	if leader, follower := length(c, 1, "s"), length(c, 2, "s"); leader != 1 || follower != 0 {
		t.Errorf("leader shows %d, follower %d", leader, follower)
	}
	wants(t, "with requires-leader", c.Append(2, true, "s", at(1), event(2)), "Leader info available: node 1")
	var notLeader *esdbcluster.NotLeaderError
	if _, err := c.View(3, true); !errors.As(err, &notLeader) || notLeader.Leader != 1 {
		t.Errorf("a read that requires the leader: %v", err)
	}
	a.run(50 * ms)
	if n := length(c, 2, "s"); n != 1 {
		t.Errorf("the follower shows %d events", n)
	}
	if met := c.Met(); met.Forwarded != 1 || met.StaleReads != 1 || met.NotLeader != 2 {
		t.Errorf("%+v", met)
	}
	c, _ = begun(esdbcluster.Settings{Nodes: 3}, 1)
	wants(t, "without Forward", c.Append(2, false, "s", at(0), event(1)), "Leader info available: node 1")
}

// Row 6: without a leader every node refuses, and a quorum elects another.
func TestElection(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, Election: esdbcluster.Range{Least: time.Second, Most: 2 * time.Second}}, 1)
	wants(t, "before", c.Append(1, true, "s", at(0), event(1)), "0")
	c.Kill(1)
	a.run(999 * ms)
	for node := range 3 {
		want := map[bool]string{true: "the node is gone", false: notReady}[node == 0]
		wants(t, "meanwhile", c.Append(node+1, false, "s", at(1), event(2)), want)
	}
	a.run(1001 * ms)
	lead := leader(c)
	if lead < 2 {
		t.Fatalf("%+v", c.State())
	}
	wants(t, "after", c.Append(lead, true, "s", at(1), event(2)), "1")
	c.Kill(lead)
	a.run(time.Minute)
	if leader(c) != 0 || length(c, 5-lead, "s") != -1 {
		t.Errorf("one of three nodes goes on alone: %+v", c.State())
	}
	c.Start(1)
	a.run(2 * time.Second)
	if leader(c) == 0 || length(c, 1, "s") != 2 {
		t.Errorf("two of three nodes: %+v, %d events", c.State(), length(c, 1, "s"))
	}
}

func leader(c *esdbcluster.Cluster) int {
	for _, m := range c.State() {
		if m.State == esdbcluster.Leader {
			return m.Node
		}
	}
	return 0
}

// A leader that resigns may take an uncommitted write with it, or the next leader commits
// it. Its call ends with the commit timeout, or with the answer.
func TestResign(t *testing.T) {
	var inherited, vanished, reused int
	for seed := range uint64(40) {
		c, a := begun(esdbcluster.Settings{Nodes: 3, CommitDelay: esdbcluster.Range{Most: 10 * ms}, Election: steady(100 * ms), CommitTimeout: 200 * ms}, seed)
		c.Append(1, true, "s", at(0), event(1))
		a.run(20 * ms)
		p := c.Append(1, true, "s", at(1), event(2))
		a.run(ms)
		if outcome(p) != "pending" {
			continue
		}
		if !c.Resign(1) || c.Resign(1) {
			t.Fatal("node 1 leads until it resigns")
		}
		a.run(99 * ms)
		wants(t, "call of a leader that has resigned", p, "pending")
		a.run(15 * ms)
		switch met := c.Met(); {
		case met.Inherited == 1:
			inherited++
			wants(t, "inherited", p, "1")
		case met.Vanished == 1:
			vanished++
			next := c.Append(leader(c), true, "s", at(1), event(3))
			a.run(20 * ms)
			if wants(t, "in the place of the vanished", next, "1"); length(c, 1, "s") == 2 {
				reused++
			}
			a.run(200 * ms)
			wants(t, "vanished", p, commitTimeout)
		default:
			t.Errorf("seed %d: %+v, %s", seed, met, outcome(p))
		}
	}
	if inherited == 0 || vanished == 0 || reused != vanished {
		t.Errorf("%d inherited, %d vanished, %d times the place was used again", inherited, vanished, reused)
	}
}

// A follower that forwarded an append to a leader that dies gets no answer, whether or
// not the write survives. The leader's own clients lose their connection.
func TestKilledLeader(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, CommitDelay: steady(10 * ms), Election: steady(50 * ms), CommitTimeout: 200 * ms, Forward: true}, 1)
	direct, forwarded := c.Append(1, false, "s", at(0), event(1)), c.Append(2, false, "r", at(0), event(2))
	c.Kill(1)
	wants(t, "direct", direct, "the node is gone")
	a.run(199 * ms)
	wants(t, "forwarded", forwarded, "pending")
	a.run(ms)
	wants(t, "forwarded", forwarded, commitTimeout)
	c.Start(1)
	a.run(20 * ms)
	if met := c.Met(); met.Vanished != 2 || met.Truncations != 1 || length(c, 1, "s")+length(c, 1, "r") != 0 {
		t.Errorf("%+v", met)
	}
}

// A leader that lost its quorum writes on until it steps down. Nothing of that commits
// before the quorum is back.
func TestStepDown(t *testing.T) {
	for _, back := range []time.Duration{40 * ms, 60 * ms} {
		c, a := begun(esdbcluster.Settings{Nodes: 3, StepDown: 50 * ms, Election: steady(20 * ms), CommitTimeout: 200 * ms}, 1)
		c.Kill(2)
		c.Kill(3)
		p := c.Append(1, true, "s", at(0), event(1))
		a.run(back)
		if want := map[bool]int{true: 0, false: -1}[back < 50*ms]; length(c, 1, "s") != want {
			t.Errorf("after %s the leader shows %d events, want %d", back, length(c, 1, "s"), want)
		}
		wants(t, "without a quorum", p, "pending")
		c.Start(2)
		a.run(20 * ms)
		wants(t, "with a quorum", p, "0")
		if want := map[bool]int{true: 0, false: 1}[back < 50*ms]; c.Met().Elections != want {
			t.Errorf("after %s: %+v", back, c.Met())
		}
	}
}

// A leader without a quorum steps down.
func TestNoQuorum(t *testing.T) {
	c, a := begun(esdbcluster.Settings{Nodes: 3, CommitDelay: steady(10 * ms), CommitTimeout: 200 * ms}, 1)
	p := c.Append(1, true, "s", at(0), event(1))
	c.Kill(2)
	c.Kill(3)
	wants(t, "alone", c.Append(1, true, "r", at(0), event(2)), notReady)
	a.run(200 * ms)
	wants(t, "begun before", p, commitTimeout)
	c.Start(3)
	a.run(20 * ms)
	if leader(c) != 1 || length(c, 3, "s") != 1 {
		t.Errorf("%+v: the write of the leader that stayed is lost", c.State())
	}
}
