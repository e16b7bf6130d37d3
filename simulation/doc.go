// Package simulation runs the whole service in a world that is made up, and made up
// the same way each time: one seed is one world.
//
// Everything that the service's constructor takes from outside is replaced: the
// store, the chain and the links to its nodes, Redis, clients, clocks, randomness.
// The service itself is not: replicas are [app.App] objects, several in one process,
// with the real pool of endpoints and the real API between them and the world.
//
// A world runs in a bubble of testing/synctest, where time passes only when everybody
// waits. That alone is not deterministic, so no call of a replica touches the world
// when it is made: it is parked. When all goroutines wait, the world puts the parked
// calls in an order that does not depend on that in which they came, draws from its
// seed what becomes of each of them and when, and carries out one at a time.
//
// So a world can lose what a replica asks, or the answer; do late what nobody waits
// for any more; stop a replica in the middle of what it does and let it go on when
// another has taken its place; and it can do all that again.
package simulation
