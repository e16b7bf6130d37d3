// Package postgres keeps the log, the payloads, the due queue, leases and checkpoints in
// Postgres 13 or newer. It gives the guarantees of the ports in eventlog/port and commands. They rest on row
// locks and unique keys, not on the isolation level.
//
// The log's order is the order of commits. Each commit of appends first locks the single row of
// log.head, so positions are dense. A reader that asks for events after position p can never be
// overtaken by a slow writer. One committer per process takes the lock and only then collects
// its callers' waiting appends. So under load one lock, one flush and one NOTIFY serve many
// appends.
//
// A transaction that locks more than one part of the log does so in this order: the row of
// log.head, log.partitions, log.events. So commits that make partitions, drops and restores
// cannot deadlock. See migrations/postgres/0032_restore.sql.
//
// The work schema is derived from the log. Its transactions do not wait for the disk: when the
// server crashes, rows and checkpoint fall back together and are rebuilt. Leases, payloads and
// the log always wait for the disk.
//
// Reads go to the primary only: a replica may show an old state.
package postgres
