// Package eventstoredb keeps the log in an EventStoreDB or KurrentDB. Everything else that
// a service keeps lies in a database beside it.
//
// Every call carries the header requires-leader: a node that does not lead refuses it and
// names the leader, where a follower would answer from the events that it has.
//
// # Names
//
//	eventlog.Version   the server's revision + 1
//	eventlog.Position  the commit position, in bytes of the server's log: sparse
//	eventlog.Event.ID  the server's event id: an append with an exact expected revision
//	                is idempotent by it
//	eventlog.Meta      JSON metadata; correlation and causation under the names that the
//	                server's own tools look for
//	Recorded.At     the server's "created", cut to the microsecond
//
// The server can only read from a position at which a record begins: positions come from
// the server and are never calculated.
//
// # Errors
//
// Signs of real servers (23.10.8, 24.6.0), and what the adapter does. Reads and
// subscriptions are repeated after each of them. "Settled" means: the adapter reads whether
// the events stand, and sends the same events again, until the caller's deadline.
//
//	kind          sign                                           append     connection
//	TimedOut      Aborted: "Operation timed out: Commit phase    settled    kept
//	              timeout", after CommitTimeoutMs; a repeat of
//	              an append that is not committed yet ends so
//	SlowConsumer  Aborted: "Consumer too slow to handle event    -          kept
//	              while live"; only subscriptions
//	Canceled      Aborted, Canceled: "Request canceled by        settled    kept
//	              server"
//	NotReady      Unavailable: "Server Is Not Ready", while      repeated   replaced
//	              nodes elect a leader; nothing is written
//	NotLeader     NotFound with the trailer exception:           repeated   replaced, by one
//	              not-leader and the leader's address            to the leader named
//	Gone          Unavailable, Internal, Canceled                settled    replaced
//	CutOff        any of these before the request's end is       repeated   replaced
//	              sent: nothing is written
//	Late          no answer in Options.CallLimit, or             settled    kept, if it gives
//	              DeadlineExceeded                                          a sign of life
//	Away          no node leads within Options.Patience          repeated   searched for
//	WrongVersion  WrongExpectedVersion; it counts writes that    conflict, if it can be read;
//	              are not committed and may be lost              else repeated
//
// A connection is replaced beside its callers: calls that are under way end by themselves.
//
// # The client library
//
// Connection strings, options and events are the client library's types (4.2), and the
// calls go through the stubs that it generates from the protocol. Its Client is not used: a
// call may hang past its context, a Client whose search for a node fails is dead for good,
// it closes a connection beside the calls on it, it does not send requires-leader, and
// an event without a time ends the process.
package eventstoredb
