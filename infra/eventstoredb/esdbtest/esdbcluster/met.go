package esdbcluster

// Met counts the events that a test must have seen before its success means anything.
type Met struct {
	DroppedRepeats    int // repeated appends left without an answer
	ConflictsAhead    int // conflicts whose revision counted uncommitted writes
	ConflictsVanished int // uncommitted writes that a conflict counted and that can never commit
	CommitTimeouts    int // appends ended by ErrCommitTimeout
	LateCommits       int // writes committed after one of their appends had ended without an answer
	Vanished          int // writes that were written and can never commit
	Inherited         int // writes of one leader committed by a later one
	Forwarded         int // appends forwarded by a follower
	StaleReads        int // reads from a node that was behind the commit
	Elections         int // leaders elected
	SlowDrops         int // subscriptions ended by ErrSlow
	SlowResumes       int // subscriptions sent back to catching up
	NotReady          int // calls refused for want of a leader
	NotLeader         int // calls refused because another node leads
	Truncations       int // logs cut back to the leader's
}
