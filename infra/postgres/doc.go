// Package postgres keeps the log, the payloads, the due queue, leases and
// checkpoints in Postgres 13 or newer. It promises what the ports in commands say,
// and rests that on row locks and unique keys, never on the isolation level.
//
// The log's order is that of commits: each commit of appends first locks the one
// row of log.head, so positions are dense, and a reader that asks for what follows
// position p can never be overtaken by a slow writer. One committer per process
// takes the lock and only then collects what its callers have brought meanwhile, so
// that under load one lock, one flush and one NOTIFY serve many appends.
//
// The work schema follows from the log. Its transactions do not wait for the disk:
// when the server crashes, rows and checkpoint fall back together and are made
// again. Leases, payloads and the log always wait.
//
// Reads go to the primary only; a replica may show a state that is long past.
package postgres
