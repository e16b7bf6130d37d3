package esdbcluster

import (
	"math/rand/v2"
	"time"
)

// Settings are the settings of [New]. The zero value is a kind single node; each field
// makes it harder on its own.
type Settings struct {
	Nodes int // number of nodes; 0 means 1

	// Now stamps records. Default: time.Now.
	Now func() time.Time
	// After calls f once d has passed, unless cancel is called first. It must not call f
	// before it returns. Default: time.AfterFunc.
	After func(d time.Duration, f func()) (cancel func())
	// Rand draws from the ranges below. Default: seeded with 1.
	Rand *rand.Rand

	// CommitDelay is the time in which one node gets a write onto its disk. Zero commits
	// at once.
	CommitDelay Range
	// FollowerLag is the time from a commit until a follower shows it.
	FollowerLag Range
	// CommitTimeout ends an append that has no answer, with [ErrCommitTimeout]. The write
	// may commit later. 0 means 2 s, the server's default.
	CommitTimeout time.Duration
	// Election is the time without a leader after one was lost. Zero elects at once.
	Election Range
	// StepDown is the time for which a leader goes on writing after it lost its quorum. Zero
	// makes it step down at once.
	StepDown time.Duration
	// GossipLag is the age of each node's knowledge about the other nodes.
	GossipLag time.Duration

	// DropRepeats leaves a repeated append without an answer, until CommitTimeout, while
	// the write that it repeats is uncommitted. Otherwise both are answered at the commit.
	DropRepeats bool
	// ConflictsAhead answers conflicts at once, with a revision that counts uncommitted
	// writes. Otherwise the answer waits until these writes are committed.
	ConflictsAhead bool
	// Forward has a follower forward an append that does not require the leader.
	// Otherwise it refuses the append with a [NotLeaderError].
	Forward bool

	// SlowLimit drops a live subscription with more than this many events that it has not
	// taken, with [ErrSlow]. 0 means no limit.
	SlowLimit int
	// ResumeSlow has such a subscription go back to catching up instead, as 24.6 does.
	ResumeSlow bool

	// StatsEvery has the server write an event of its own into a $stats stream with every
	// n-th append; 0 means never.
	StatsEvery int
	// Kept are the committed writes of an earlier run, in order. Without any, the log
	// begins with [FirstWrite].
	Kept [][]*Record
	// Keep stores a committed write. Its error ends the appends that wait for the write.
	Keep func([]*Record) error
}

// Range is the interval from which a duration is drawn, evenly. Most at or below Least
// means always Least.
type Range struct{ Least, Most time.Duration }

// Hard returns settings with everything on, and times like those seen on real servers.
func Hard(nodes int) Settings {
	return Settings{
		Nodes:          nodes,
		CommitDelay:    Range{0, 20 * time.Millisecond},
		FollowerLag:    Range{0, 50 * time.Millisecond},
		CommitTimeout:  2 * time.Second,
		Election:       Range{time.Second, 2 * time.Second},
		StepDown:       500 * time.Millisecond,
		GossipLag:      500 * time.Millisecond,
		DropRepeats:    true,
		ConflictsAhead: true,
		Forward:        true,
		SlowLimit:      32,
	}
}

// Faster returns the settings with every time divided by n.
func (s Settings) Faster(n int) Settings {
	by := time.Duration(n)
	for _, r := range []*Range{&s.CommitDelay, &s.FollowerLag, &s.Election} {
		r.Least, r.Most = r.Least/by, r.Most/by
	}
	for _, d := range []*time.Duration{&s.CommitTimeout, &s.StepDown, &s.GossipLag} {
		*d /= by
	}
	return s
}

// withDefaults fills in the fields that are zero and have a default.
func (s Settings) withDefaults() Settings {
	s.Nodes = max(s.Nodes, 1)
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.After == nil {
		s.After = func(d time.Duration, f func()) (cancel func()) {
			timer := time.AfterFunc(d, f)
			return func() { timer.Stop() }
		}
	}
	if s.Rand == nil {
		s.Rand = rand.New(rand.NewPCG(1, 1))
	}
	if s.CommitTimeout <= 0 {
		s.CommitTimeout = 2 * time.Second
	}
	if len(s.Kept) == 0 {
		s.Kept = [][]*Record{FirstWrite(s.Now())}
	}
	if s.Keep == nil {
		s.Keep = func([]*Record) error { return nil }
	}
	return s
}

// draw draws a duration.
func (r Range) draw(from *rand.Rand) time.Duration {
	if r.Most <= r.Least {
		return r.Least
	}
	return r.Least + time.Duration(from.Int64N(int64(r.Most-r.Least)+1))
}
