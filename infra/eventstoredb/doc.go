// Package eventstoredb keeps the log in an EventStoreDB or KurrentDB: everything else
// that a service keeps lies in a database beside it.
//
// The client library has faults that a long-lived service meets: a call may hang past
// its context, a client whose search for a node fails is dead for ever, closing it
// beside a call panics, and a subscription that broke does not look for another node.
// Each call therefore runs in a goroutine of its own under a deadline, and a supervisor
// makes a new client for one that has failed; see [supervisor].
//
// What is the store's and what is ours:
//
//	event.Version   the server's revision + 1
//	event.Position  the commit position, in bytes of the server's log: sparse
//	event.Event.ID  the server's event id: an append with an exact expected revision
//	                is idempotent by it
//	event.Meta      JSON metadata; correlation and causation under the names that the
//	                server's own tools look for
//	Recorded.At     the server's "created", cut to the microsecond
//
// Only a position at which a record begins is one that the server can read from:
// positions are taken from it and never calculated.
package eventstoredb
