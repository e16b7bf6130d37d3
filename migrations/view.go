package migrations

import "embed"

// View holds the read models' tables, with the same text for both engines.
//
//go:embed view/*.sql
var View embed.FS
