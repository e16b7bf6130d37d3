// Package migrations holds the databases' tables as SQL text, applied in order of file name. A
// released file is never edited: a change is a new file.
package migrations

import "embed"

// Postgres holds the tables of the log and of the work schema, for Postgres only.
//
//go:embed postgres/*.sql
var Postgres embed.FS
