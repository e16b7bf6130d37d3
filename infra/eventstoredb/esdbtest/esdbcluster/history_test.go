package esdbcluster_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// history drives a cluster at random and checks its promises after each step.
type history struct {
	c         *esdbcluster.Cluster
	a         *agenda
	nodes     int
	committed []*esdbcluster.Record // as seen last
	calls     []*call
	acked     map[[16]byte]*esdbcluster.Record
	subs      []*subscribed
}

// call is an append that was begun.
type call struct {
	*esdbcluster.Pending
	stream   string
	expected int
	id       int
	least    int // committed events of the stream when it was begun
	over     bool
}

// subscribed is a subscription and the position of the last record that it got.
type subscribed struct {
	*esdbcluster.Subscription
	next int // index in the committed log
}

// TestHistories checks for random histories:
// the committed log only grows;
// each node shows a beginning of it;
// an acknowledged append is in it once, at the answered place;
// a conflict never says less than was committed;
// a subscription gets each record once, in order.
func TestHistories(t *testing.T) {
	var met esdbcluster.Met
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			nodes := rapid.SampledFrom([]int{1, 3, 3, 5}).Draw(t, "nodes")
			s := esdbcluster.Hard(nodes).Faster(10)
			s.CommitDelay.Most = 20 * ms
			s.SlowLimit, s.StatsEvery = 2, 7
			s.DropRepeats = rapid.Bool().Draw(t, "drop repeats")
			s.ConflictsAhead = rapid.Bool().Draw(t, "conflicts ahead")
			s.ResumeSlow = rapid.Bool().Draw(t, "resume slow")
			h := &history{nodes: nodes, acked: map[[16]byte]*esdbcluster.Record{}}
			h.c, h.a = begun(s, rapid.Uint64().Draw(t, "seed"))
			h.committed = h.c.Committed()
			for range rapid.IntRange(50, 200).Draw(t, "steps") {
				h.step(t)
				h.check(t)
			}
			h.recover(t)
			add(&met, h.c.Met())
		})
	}
	t.Logf("%+v", met)
	for what, n := range map[string]int{
		"dropped repeats": met.DroppedRepeats, "conflicts ahead": met.ConflictsAhead, "late commits": met.LateCommits,
		"conflicts with vanished writes": met.ConflictsVanished, "commit timeouts": met.CommitTimeouts, "truncations": met.Truncations,
		"vanished writes": met.Vanished, "inherited writes": met.Inherited, "forwarded": met.Forwarded, "stale reads": met.StaleReads,
		"slow drops": met.SlowDrops, "slow resumes": met.SlowResumes, "not ready": met.NotReady, "not leader": met.NotLeader,
	} {
		if n == 0 {
			t.Errorf("%s: none in all histories", what)
		}
	}
}

func add(sum *esdbcluster.Met, m esdbcluster.Met) {
	sum.DroppedRepeats += m.DroppedRepeats
	sum.ConflictsAhead += m.ConflictsAhead
	sum.ConflictsVanished += m.ConflictsVanished
	sum.CommitTimeouts += m.CommitTimeouts
	sum.LateCommits += m.LateCommits
	sum.Truncations += m.Truncations
	sum.Vanished += m.Vanished
	sum.Inherited += m.Inherited
	sum.Forwarded += m.Forwarded
	sum.StaleReads += m.StaleReads
	sum.Elections += m.Elections
	sum.SlowDrops += m.SlowDrops
	sum.SlowResumes += m.SlowResumes
	sum.NotReady += m.NotReady
	sum.NotLeader += m.NotLeader
}

// step lets something happen.
func (h *history) step(t *rapid.T) {
	node := rapid.IntRange(1, h.nodes).Draw(t, "node")
	switch rapid.IntRange(0, 20).Draw(t, "step") {
	default:
		h.append(t, node)
	case 8, 9, 10:
		h.a.run(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * ms)
	case 11:
		h.a.run(time.Duration(rapid.IntRange(100, 400).Draw(t, "ms")) * ms)
	case 12, 13:
		if len(h.calls) > 0 {
			old := h.calls[rapid.IntRange(max(0, len(h.calls)-3), len(h.calls)-1).Draw(t, "repeated")]
			h.begin(node, old.stream, old.expected, old.id, rapid.Bool().Draw(t, "requires leader"))
		}
	case 14:
		h.c.Kill(node)
	case 15, 16:
		for _, m := range h.c.State() {
			if m.State == esdbcluster.Dead {
				h.c.Start(m.Node)
				break
			}
		}
	case 17:
		if n := leader(h.c); n > 0 {
			h.c.Resign(n)
		}
	case 18, 19:
		at := rapid.IntRange(0, len(h.committed)).Draw(t, "from")
		from := uint64(1 << 62)
		if at < len(h.committed) {
			from = h.committed[at].Position
		}
		if s, err := h.c.Subscribe(node, rapid.Bool().Draw(t, "requires leader"), from, isHappened); err == nil {
			h.subs = append(h.subs, &subscribed{s, at})
		}
	case 20:
		for _, s := range h.subs {
			h.take(t, s)
		}
	}
}

// append begins an append of a new event, at about the version that the stream has.
func (h *history) append(t *rapid.T, node int) {
	stream := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "stream")
	version := max(0, h.length(stream)+rapid.IntRange(-1, 2).Draw(t, "version"))
	if n := leader(h.c); n > 0 && rapid.Bool().Draw(t, "at the leader") {
		node = n
	}
	h.begin(node, stream, version, len(h.calls), rapid.Bool().Draw(t, "requires leader"))
}

func (h *history) length(stream string) (n int) {
	for _, r := range h.committed {
		if r.Stream == stream {
			n++
		}
	}
	return n
}

func (h *history) begin(node int, stream string, expected, id int, requiresLeader bool) {
	p := h.c.Append(node, requiresLeader, stream, at(expected), event(id))
	h.calls = append(h.calls, &call{Pending: p, stream: stream, expected: expected, id: id, least: h.length(stream)})
}

func (h *history) check(t *rapid.T) {
	now := h.c.Committed()
	if len(now) < len(h.committed) {
		t.Fatalf("the committed log shrank from %d to %d records", len(h.committed), len(now))
	}
	for i, r := range h.committed {
		if now[i] != r {
			t.Fatalf("record %d was %+v and is %+v", i, r, now[i])
		}
	}
	h.committed = now
	h.ordered(t)
	for node := range h.nodes {
		v, err := h.c.View(node+1, false)
		if err != nil {
			continue
		}
		for i, r := range v.All() {
			if i >= len(now) || r != now[i] {
				t.Fatalf("node %d shows %+v, which is not committed at %d", node+1, r, i)
			}
		}
	}
	for _, c := range h.calls {
		h.answered(t, c)
	}
}

// ordered checks positions and revisions, and that no event is there twice.
func (h *history) ordered(t *rapid.T) {
	streams, ids := map[string]uint64{}, map[[16]byte]bool{}
	for i, r := range h.committed {
		if i > 0 && r.Position <= h.committed[i-1].Position {
			t.Fatalf("positions %d and %d", h.committed[i-1].Position, r.Position)
		}
		if r.Revision != streams[r.Stream] {
			t.Fatalf("%s has revision %d after %d events", r.Stream, r.Revision, streams[r.Stream])
		}
		streams[r.Stream]++
		if isHappened(r) && ids[r.ID] {
			t.Fatalf("event %x is there twice", r.ID)
		}
		ids[r.ID] = true
	}
	for id, r := range h.acked {
		if !ids[id] {
			t.Fatalf("acknowledged and lost: %+v", r)
		}
	}
}

// answered checks a call that has ended since the last step.
func (h *history) answered(t *rapid.T, c *call) {
	if c.over {
		return
	}
	select {
	case <-c.Done():
	default:
		return
	}
	c.over = true
	last, err := c.Outcome()
	var conflict *esdbcluster.ConflictError
	switch {
	case err == nil:
		if int(last.Revision) != c.expected || !h.c.Has(last.Position) {
			t.Fatalf("append of %d to %s at %d was answered with %+v", c.id, c.stream, c.expected, last)
		}
		h.acked[last.ID] = last
	case errors.As(err, &conflict):
		if version := int(conflict.Revision) + 1; conflict.Exists && version < c.least || !conflict.Exists && c.least > 0 {
			t.Fatalf("%v, when %d events were committed", err, c.least)
		}
	}
}

// take takes some records of a subscription.
func (h *history) take(t *rapid.T, s *subscribed) {
	for range 5 {
		news, err := s.Next(4)
		if err != nil {
			return
		}
		for _, r := range news.Records {
			if r != h.committed[s.next] {
				t.Fatalf("a subscription got %+v in the place of %+v", r, h.committed[s.next])
			}
			s.next++
		}
	}
}

// recover starts all nodes: in the end they show the same, and every call has ended.
func (h *history) recover(t *rapid.T) {
	for node := range h.nodes {
		h.c.Start(node + 1)
	}
	h.a.run(time.Minute)
	h.check(t)
	for _, c := range h.calls {
		if !c.over {
			t.Fatalf("append of %d has not ended", c.id)
		}
	}
	for node := range h.nodes {
		if v, err := h.c.View(node+1, false); err != nil || len(v.All()) != len(h.committed) {
			t.Fatalf("node %d shows %d records of %d: %v", node+1, len(v.All()), len(h.committed), err)
		}
	}
	p := h.c.Append(leader(h.c), true, "last", at(0), event(1<<15))
	h.a.run(time.Second)
	if got := outcome(p); got != "0" {
		t.Fatalf("the last append: %s", got)
	}
}
