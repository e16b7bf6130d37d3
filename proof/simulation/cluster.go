package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// ClusterPlan is an EventStoreDB cluster for the log, and its faults. Without nodes the log is
// in the store.
type ClusterPlan struct {
	Nodes    int
	Prefix   bool          // streams' names have a prefix
	Commit   time.Duration // longest time until a node has a write on disk
	Lag      time.Duration // longest time from a commit until a follower shows it
	Election time.Duration // shortest time without a leader; the longest is twice that
	StepDown time.Duration // time for which a leader without a quorum continues to write
	Gossip   time.Duration // age of a node's knowledge about the others
	Waiting  int           // events that may wait for a live subscriber; 0: unlimited
	Resume   bool          // a slow subscriber is not dropped: it catches up again
	Repeats  bool          // repeats of uncommitted appends are dropped
	Ahead    bool          // conflicts count uncommitted writes
	Stats    int           // the server writes its own event with every n-th append; 0: never

	// Mean intervals; 0: never.
	Leader   time.Duration // kills of the leader
	Follower time.Duration // kills of a follower
	Resign   time.Duration // resignations of the leader
	Minority time.Duration // losses of the quorum
	Disk     time.Duration // slow disks
}

// WithCluster draws a cluster of three nodes for the log of a plan.
func (p Plan) WithCluster() Plan {
	d := dice{rand.New(rand.NewPCG(p.Seed, 0xe5db))}
	p.Cluster = ClusterPlan{
		Nodes: 3, Prefix: d.chance(0.5), Commit: d.of(5*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond),
		Lag: d.of(50*time.Millisecond, 500*time.Millisecond, 2*time.Second), Election: d.of(500*time.Millisecond, time.Second, 3*time.Second),
		StepDown: d.of(0, 500*time.Millisecond, 3*time.Second), Gossip: d.of(0, 500*time.Millisecond, 2*time.Second),
		Waiting: d.IntN(65), Resume: d.chance(0.2),
		Repeats: d.chance(0.8), Ahead: d.chance(0.8), Stats: d.IntN(10),
		Leader: d.every(2 * time.Minute), Follower: d.every(3 * time.Minute), Resign: d.every(2 * time.Minute),
		Minority: d.every(5 * time.Minute), Disk: d.every(4 * time.Minute),
	}
	return p
}

// cluster is the log of a world, on the nodes of a cluster. It is nil without a cluster.
type cluster struct {
	world  *world
	plan   ClusterPlan
	model  *esdbcluster.Cluster
	prefix string
	sent   map[eventlog.ID]bool // events that were sent
	writes map[*byte]*sending   // calls by the metadata of the events that they send
}

// sending is a replica's call that appends.
type sending struct {
	by *replica

	mu        sync.Mutex
	committed bool // the cluster has committed its events
	refused   bool // the answer said that nothing was written
}

func newCluster(w *world) *cluster {
	p := w.plan.Cluster
	if p.Nodes == 0 {
		return nil
	}
	c := &cluster{world: w, plan: p, sent: map[eventlog.ID]bool{}, writes: map[*byte]*sending{}}
	if p.Prefix {
		c.prefix = "watchtower."
	}
	c.model = esdbcluster.New(esdbcluster.Settings{
		Nodes: p.Nodes, Now: w.storeTime, After: c.after, Rand: rand.New(rand.NewPCG(w.plan.Seed, 0xe5db1)),
		FollowerLag: esdbcluster.Range{Most: p.Lag}, Election: esdbcluster.Range{Least: p.Election, Most: 2 * p.Election},
		StepDown: p.StepDown, GossipLag: p.Gossip, DropRepeats: p.Repeats, ConflictsAhead: p.Ahead, Forward: true,
		SlowLimit: p.Waiting, ResumeSlow: p.Resume, StatsEvery: p.Stats, Keep: c.commit,
	})
	return c
}

// after schedules f on the cluster's clock.
func (c *cluster) after(d time.Duration, f func()) (cancel func()) {
	canceled := false
	c.world.agenda.after(d, "", func() {
		if !canceled {
			f()
		}
	})
	return func() { canceled = true }
}

// begin ends the initial phase, in which each append commits at once.
func (c *cluster) begin() {
	if c != nil {
		c.model.SetCommitDelay(esdbcluster.Range{Most: c.plan.Commit})
	}
}

// metadata is the metadata of a stored event, as described in docs/howto/eventstoredb.md.
type metadata struct {
	Correlation eventlog.ID   `json:"$correlationId,omitzero"`
	Causation   eventlog.ID   `json:"$causationId,omitzero"`
	Actor       string        `json:"actor,omitempty"`
	Trace       string        `json:"trace,omitempty"`
	Link        eventlog.Link `json:"link,omitzero"`
}

// found appends events before any replica runs.
func (c *cluster) found(stream eventlog.Stream, expected eventlog.Version, events []eventlog.Event) (eventlog.Appended, error) {
	var all []esdbcluster.Proposal
	for _, e := range events {
		meta, err := json.Marshal(metadata(e.Meta))
		if err != nil {
			return eventlog.Appended{}, err
		}
		all = append(all, esdbcluster.Proposal{ID: e.ID, Kind: e.Name, Content: "application/json", Data: e.Data, Meta: meta})
	}
	last, err := c.model.Append(1, true, c.prefix+string(stream), expectation(expected), all).Outcome()
	if err != nil {
		return eventlog.Appended{}, err
	}
	return eventlog.Appended{Version: eventlog.Version(last.Revision + 1), Position: eventlog.Position(last.Position)}, nil
}

// expectation is a stream's expected version in the server's terms.
func expectation(expected eventlog.Version) esdbcluster.Expectation {
	if expected == 0 {
		return esdbcluster.Expectation{Kind: esdbcluster.ExpectNoStream}
	}
	return esdbcluster.Expectation{Revision: uint64(expected) - 1}
}

// commit mirrors a committed write into the store, where the world judges it. The cluster calls
// it in commit order.
func (c *cluster) commit(records []*esdbcluster.Record) error {
	w := c.world
	var all []eventlog.Recorded
	var by *sending
	for _, r := range records {
		if !c.ours(r) {
			continue
		}
		e, err := c.recorded(r)
		if err != nil {
			w.judge.fail("log", "%s, revision %d: %v", r.Stream, r.Revision, err)
			continue
		}
		if by = c.writes[&r.Meta[0]]; by.commit() {
			w.judge.fail("P25", "%s, version %d, is in the log, and its append was answered as not written", e.Stream, e.Version)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil
	}
	w.store.Commit(all...)
	last := all[len(all)-1]
	w.appended(eventlog.Appended{Version: last.Version, Position: last.Position}, len(all))
	if by != nil && last.Stream == audit.Stream {
		w.judge.seals.by(by.by)
	}
	return nil
}

// commit records that the call's events are in the log. refused reports whether the answer
// denied that.
func (s *sending) commit() (refused bool) {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = true
	return s.refused
}

// refuse records the answer that nothing was written. committed reports whether the events are
// in the log.
func (s *sending) refuse() (committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
	return s.committed
}

// ours reports whether a record belongs to the service's log.
func (c *cluster) ours(r *esdbcluster.Record) bool {
	return !strings.HasPrefix(r.Stream, "$") && strings.HasPrefix(r.Stream, c.prefix)
}

// recorded converts a record to the service's form.
func (c *cluster) recorded(r *esdbcluster.Record) (eventlog.Recorded, error) {
	var m metadata
	if err := json.Unmarshal(r.Meta, &m); err != nil {
		return eventlog.Recorded{}, fmt.Errorf("its metadata: %w", err)
	}
	return eventlog.Recorded{
		Event:  eventlog.Event{ID: r.ID, Name: r.Kind, Data: r.Data, Meta: eventlog.Meta(m)},
		Stream: eventlog.Stream(strings.TrimPrefix(r.Stream, c.prefix)), Version: eventlog.Version(r.Revision + 1),
		Position: eventlog.Position(r.Position), At: time.Unix(0, r.Created*100).UTC().Truncate(time.Microsecond),
	}, nil
}

// append starts an append at a node.
func (c *cluster) append(by *sending, node int, stream string, expected eventlog.Version, events []esdbcluster.Proposal) *esdbcluster.Pending {
	some, again := c.world.some, c.sent[events[0].ID]
	for _, e := range events {
		c.sent[e.ID], c.writes[&e.Meta[0]] = true, by
	}
	ahead := c.model.Met().ConflictsAhead
	p := c.model.Append(node, true, stream, expectation(expected), events)
	if c.model.Met().ConflictsAhead > ahead {
		c.killAtConflict()
	}
	p.Then(func(_ *esdbcluster.Record, err error) {
		switch name := strings.TrimPrefix(stream, c.prefix); {
		case err == nil && again:
			some[appendedAgain]++
		case !errors.As(err, new(*esdbcluster.ConflictError)):
		case name == string(audit.Stream):
			some[sealedBefore]++
		case strings.HasPrefix(name, lane.StreamPrefix):
			some[fenced]++
		}
	})
	return p
}
