// Package esdbcluster is a model of an EventStoreDB cluster: nodes with a log each, a
// leader, replication, elections, and the errors that clients get meanwhile. It has no
// network and starts no goroutine: time and randomness are injected, so that the same
// calls give the same history. The gRPC double (package esdbtest) serves it to a real
// client; a simulation may call it directly.
//
// The zero [Settings] are a single node that commits each append at once. Each way in
// which a real server is harder has a field of its own there; [Hard] turns all of them on.
//
// # How it works
//
// The leader appends a write to its log at once and gives it revisions and a position.
// Each node, the leader included, has the write on disk after a delay of its own. Once a
// quorum of nodes has it, the leader commits it: now the append is answered, and the
// leader's readers and subscribers get the events. A follower shows them FollowerLag later.
// No node ever shows an uncommitted write.
//
// A leader that is killed or resigns leaves the cluster without one for the time of an
// election. Then one of the nodes with the longest log leads. It has every committed
// write. It commits the uncommitted writes in its log together with a first write of its
// own, into $epoch-information. Uncommitted writes that it does not have vanish: the nodes
// that do have them truncate their logs, and the same revisions and positions are used
// again.
package esdbcluster
