package embedded

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

// makeReaders makes the table of checkpoints, or migrates an older program's.
func makeReaders(ctx context.Context, dbtx *sql.Tx) error {
	const version = `version bigint NOT NULL DEFAULT 0`
	readers, err := schemaOf(ctx, dbtx, ShadowPrefix+"readers")
	switch {
	case err != nil:
	case len(readers) == 0:
		_, err = dbtx.ExecContext(ctx, `CREATE TABLE `+ShadowPrefix+`readers (name text PRIMARY KEY, position bigint NOT NULL, `+version+`)`)
	case !readers[0].versioned():
		_, err = dbtx.ExecContext(ctx, `ALTER TABLE `+ShadowPrefix+`readers ADD COLUMN `+version)
	}
	return err
}

// alike returns a serving table with its indexes, and whether the shadow has the same.
func alike(ctx context.Context, dbtx *sql.Tx, table string) (serving []part, same bool, err error) {
	if serving, err = schemaOf(ctx, dbtx, table); err != nil {
		return nil, false, err
	}
	made, err := schemaOf(ctx, dbtx, ShadowPrefix+table)
	if err != nil {
		return nil, false, err
	}
	return serving, slices.EqualFunc(serving, made, func(s, m part) bool { return s.shadowed(table) == m.text }), nil
}

// part is a table or an index in the schema.
type part struct {
	kind, name, text string
}

// versioned reports whether a table of checkpoints has a column for the version that made the
// rows.
func (p part) versioned() bool { return strings.Contains(p.text, "version") }

// schemaOf returns a table and its indexes, the table first; nothing if there is none.
func schemaOf(ctx context.Context, dbtx *sql.Tx, table string) (parts []part, err error) {
	found, err := dbtx.QueryContext(ctx, `SELECT type, name, sql FROM sqlite_schema
		WHERE tbl_name = $1 AND sql IS NOT NULL ORDER BY type = 'table' DESC, name`, table)
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // Err tells
	for found.Next() {
		var p part
		if err := found.Scan(&p.kind, &p.name, &p.text); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, found.Err()
}

// Beginnings of the schema's statements, with the name and the table.
var (
	makesTable = regexp.MustCompile(`^CREATE TABLE "?\w+"?`)
	makesIndex = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX "?\w+"? ON "?\w+"?`)
)

// shadowed is the statement that makes the same for the shadow.
func (p part) shadowed(table string) string {
	if p.kind == "table" {
		return makesTable.ReplaceAllLiteralString(p.text, "CREATE TABLE "+ShadowPrefix+table)
	}
	return makesIndex.ReplaceAllString(p.text, "CREATE ${1}INDEX "+ShadowPrefix+p.name+" ON "+ShadowPrefix+table)
}
