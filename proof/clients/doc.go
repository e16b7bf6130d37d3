// Package clients proves the clients of both services: the Go client and the TypeScript client,
// packed as npm packs it, run the same scenario (testdata/scenario.yaml) against the real
// programs, over connections that fail. The test also counts which operations of the contracts
// the scenario has used: a client that cannot call one fails it.
package clients
