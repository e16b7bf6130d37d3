package migrations

import "embed"

// View holds the read models' tables, one text for both engines.
//
//go:embed view/*.sql
var View embed.FS
