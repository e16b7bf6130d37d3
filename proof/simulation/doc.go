// Package simulation runs the whole service in a simulated world that is deterministic: one seed
// is one world.
//
// All external dependencies of the service's constructor are simulated: the store, the chain and
// the links to its nodes, Redis, clients, clocks, randomness. The service itself is real:
// replicas are [app.App] objects, several in one process, with the real pool of endpoints and
// the real API.
//
// A world runs in a bubble of testing/synctest, where time passes only when all goroutines wait.
// That alone is not deterministic, so a replica's call does not act on the world at once: it is
// parked. When all goroutines wait, the world sorts the parked calls independently of their
// arrival. It draws the outcome and the time of each from its seed, and executes one at a time.
//
// So a world can lose a request or its answer, execute a call after its caller gave up, and stop
// a replica in the middle of its work and resume it after another took over. It can repeat all
// that exactly.
package simulation
