// Package esdbtest is a double of an EventStoreDB server or cluster. It speaks the
// protocol of EventStore-Client-Go v4 over real gRPC. Package esdbcluster keeps its log,
// replicates it and elects leaders. The settings there make it as hard as a real server.
// [Trouble] adds faults of the network.
//
// # Assumptions about real servers
//
// The protocol comes from the client's .proto files and the server's documentation. The
// behaviours below were seen on real servers 23.10.8 (one node, and three with TLS) and
// 24.6.0 (one node), unless the table says otherwise.
//
//	row  behaviour                                                 setting (esdbcluster.Settings)
//	1    a repeat of an uncommitted append is dropped without an   DropRepeats, CommitDelay,
//	     answer; after 2 s "Aborted: Operation timed out: Commit   CommitTimeout
//	     phase timeout"
//	2    the revision of a conflict counts uncommitted writes,     ConflictsAhead, CommitDelay,
//	     which a lost leader may take with it                      Election
//	3    a follower without "requires-leader" serves reads from    Forward, FollowerLag
//	     its own log and forwards appends; with it, it answers
//	     NotFound and the leader's address in trailers
//	4    Aborted is for the server's own time limits, and the      CommitTimeout, SlowLimit;
//	     connection stays ("Request canceled by server" is from    Trouble.CancelReads
//	     the server's code)
//	5    23.10 drops a live subscription that is too slow;         SlowLimit; ResumeSlow
//	     24.6 sends it back to catching up, and then CaughtUp
//	     again, without FellBehind
//	6    while nodes elect, each call is refused with              Election
//	     "Unavailable: Server Is Not Ready", for 1 to 2 s
//	7    after an answered append, a follower may not have the     FollowerLag
//	     events yet
//
// Four behaviours were not seen and are assumed. A leader that lost its quorum writes on for
// a while (StepDown). A resignation breaks no connection and
// no subscription. Gossip may be old (GossipLag). An append that a follower forwarded to a
// leader that dies ends with the commit timeout.
//
// # Limits
//
// It has no users beyond one name and password, no access lists, no streams with limits,
// no deletes, no scavenge, no persistent subscriptions, no projections, no batch append,
// no read-only replicas, and no subscriptions to a stream. Only whole nodes fail: no
// partition cuts some nodes from others, and no disk is lost. A node that has to truncate
// its log does so at once instead of restarting. A subscription is never too slow "while
// transitioning to live". A position between two records is refused; the answer of a real
// server is not known.
package esdbtest
