package simulation

import (
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// weather schedules the faults of the nodes.
func (c *cluster) weather() {
	if c == nil {
		return
	}
	w, a := c.world, c.world.agenda
	w.often(c.plan.Leader, "kill leader", func() {
		c.kill("cluster: leader killed", c.in(esdbcluster.Leader), a.between(time.Second, 20*time.Second))
	})
	w.often(c.plan.Follower, "kill follower", func() {
		c.kill("cluster: follower killed", c.in(esdbcluster.Follower), a.between(time.Second, 20*time.Second))
	})
	w.often(c.plan.Resign, "resign", func() {
		if n := c.in(esdbcluster.Leader); n > 0 && c.model.Resign(n) {
			w.faults["cluster: leader resigned"]++
		}
	})
	w.often(c.plan.Minority, "kill a majority", func() {
		for range c.plan.Nodes/2 + 1 {
			c.kill("cluster: killed with a majority", c.alive(), a.between(3*time.Second, 30*time.Second))
		}
	})
	w.often(c.plan.Disk, "slow disks", func() {
		w.faults["cluster: disks are slow"]++
		c.model.SetCommitDelay(esdbcluster.Range{Most: a.between(100*time.Millisecond, slowDisk)})
		a.after(a.between(2*time.Second, 30*time.Second), "quick disks", func() {
			c.model.SetCommitDelay(esdbcluster.Range{Most: c.plan.Commit})
		})
	})
}

// clusterLate is the maximum duration of a log call while the cluster has faults: the adapter's
// limit.
const clusterLate = 30 * time.Second

// slowDisk is the maximum delay of a slow disk: longer than the server waits for a commit.
const slowDisk = 3 * time.Second

// in is a node in a state; 0: none.
func (c *cluster) in(s esdbcluster.State) int {
	return c.any(func(m esdbcluster.Member) bool { return m.State == s })
}

// alive is a living node; 0: none.
func (c *cluster) alive() int {
	return c.any(func(m esdbcluster.Member) bool { return m.State != esdbcluster.Dead })
}

func (c *cluster) any(is func(esdbcluster.Member) bool) int {
	members := c.model.State()
	for _, i := range c.world.agenda.rand.Perm(len(members)) {
		if is(members[i]) {
			return members[i].Node
		}
	}
	return 0
}

// kill kills a node, and restarts it after a time.
func (c *cluster) kill(why string, node int, down time.Duration) {
	if node == 0 {
		return
	}
	c.world.faults[why]++
	c.model.Kill(node)
	c.world.agenda.after(down, "start node", func() { c.model.Start(node) })
}

// killAtConflict sometimes kills the leader right after it counted an uncommitted write as a
// conflict: the write may be lost.
func (c *cluster) killAtConflict() {
	w := c.world
	if c.plan.Leader == 0 || w.healed || !w.agenda.chance(0.05) {
		return
	}
	w.agenda.after(0, "kill leader at a conflict", func() {
		if !w.healed {
			c.kill("cluster: leader killed", c.in(esdbcluster.Leader), w.agenda.between(time.Second, 20*time.Second))
		}
	})
}

// heal starts all nodes, and ends their faults.
func (c *cluster) heal() {
	if c == nil {
		return
	}
	c.model.SetCommitDelay(esdbcluster.Range{Most: c.plan.Commit})
	for _, m := range c.model.State() {
		c.model.Start(m.Node)
	}
}

// drawCluster turns a log call's fault into the corresponding error of the adapter's connection.
func (w *world) drawCluster(c *call, f *fate) {
	if f.err == nil {
		return
	}
	failure, a := &eventstoredb.Failure{Kind: eventstoredb.Gone, Err: errCut}, w.agenda
	switch {
	case c.kind == writing && f.lost && a.chance(0.5):
		f.name, failure.Kind = "cluster: append cut off", eventstoredb.CutOff
	case a.chance(0.3):
		f.name, failure.Kind = "cluster: call canceled by the server", eventstoredb.Canceled
	}
	f.err = failure
}

// Events that must happen in some world with a cluster.
const (
	elected       = "cluster: a leader elected"
	vanished      = "cluster: a write vanished with its leader"
	inherited     = "cluster: a write committed by a later leader"
	repeatDropped = "cluster: a repeated append dropped"
	conflictAhead = "cluster: a conflict that counts uncommitted writes"
	aheadVanished = "cluster: a write vanished that a conflict had counted"
	commitTimeout = "cluster: an append ended by the commit timeout"
	commitLate    = "cluster: a write committed after its append had ended"
	slowDropped   = "cluster: a slow subscription dropped"
	slowResumed   = "cluster: a slow subscription sent back to catching up"
	notReady      = "cluster: a call refused for want of a leader"
	notLeader     = "cluster: a call refused by a follower"
	truncated     = "cluster: a node's log cut back"
)

// Clustered lists the events that must happen in some world with a cluster.
func Clustered() []string {
	all := []string{
		elected, vanished, inherited, repeatDropped, conflictAhead, aheadVanished, commitTimeout, commitLate, slowDropped, notReady, notLeader, truncated,
		"cluster: leader killed", "cluster: follower killed", "cluster: leader resigned", "cluster: killed with a majority", "cluster: disks are slow",
		"cluster: append cut off", "cluster: call canceled by the server",
	}
	for _, point := range eventstoredb.CrashPoints() {
		all = append(all, "crash at "+point)
	}
	return all
}

// count adds the cluster's events to the world's counts.
func (c *cluster) count() {
	if c == nil {
		return
	}
	met := c.model.Met()
	for name, n := range map[string]int{
		elected: met.Elections, vanished: met.Vanished, inherited: met.Inherited, repeatDropped: met.DroppedRepeats,
		conflictAhead: met.ConflictsAhead, aheadVanished: met.ConflictsVanished, commitTimeout: met.CommitTimeouts, commitLate: met.LateCommits,
		slowDropped: met.SlowDrops, slowResumed: met.SlowResumes, notReady: met.NotReady, notLeader: met.NotLeader, truncated: met.Truncations,
	} {
		if n > 0 {
			c.world.some[name] = n
		}
	}
}
