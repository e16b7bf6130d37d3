package migrations

import "embed"

// Embedded holds the tables of the embedded store, for SQLite only: one folder for each of its
// files.
//
//go:embed embedded/*/*.sql
var Embedded embed.FS
