package main_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// engine is the store's flag: embedded:DIR or a URL.
func (w *world) engine() (dir, dsn string) {
	if dir, embedded := strings.CutPrefix(w.store[1], "embedded:"); embedded {
		return dir, ""
	}
	if w.eventsURL() != "" { // what is beside the log
		return "", w.store[3]
	}
	return "", w.store[1]
}

// payloads are the sealed payloads that a stopped service has kept of these.
func (w *world) payloads(t *testing.T, payments []rig.Payment) (kept []payload.Sealed) {
	t.Helper()
	var get func(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error)
	dir, dsn := w.engine()
	if dir != "" {
		db, err := embedded.Open(dir, embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		get = db.Payloads().Get
	} else {
		db, err := postgres.Open(w.ctx, dsn, postgres.Options{})
		check(t, err)
		defer func() { check(t, db.Close(context.Background())) }()
		get = db.Payloads.Get
	}
	for _, p := range payments {
		if sealed, err := get(w.ctx, rig.TempoChain, p.Hash); err == nil {
			kept = append(kept, sealed)
		}
	}
	return kept
}

// data is everything that a stopped service has stored: each file of the embedded
// store, or each table of Postgres as a dump shows it.
func (w *world) data(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	dir, dsn := w.engine()
	if dir == "" {
		return dump(t, w.ctx, dsn)
	}
	check(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all[entry.Name()] = readFile(t, path)
		}
		return err
	}))
	return all
}

// dump copies every table that holds rows itself, as pg_dump does.
func dump(t *testing.T, ctx context.Context, dsn string) map[string][]byte {
	t.Helper()
	db, err := pgx.Connect(ctx, dsn)
	check(t, err)
	defer db.Close(ctx) //nolint:errcheck // the test is over with it
	rows, err := db.Query(ctx, `SELECT c.oid::regclass::text FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('log', 'work', 'view') AND c.relkind = 'r'`)
	check(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	all := map[string][]byte{}
	for _, table := range tables {
		var text bytes.Buffer
		_, err := db.PgConn().CopyTo(ctx, &text, "COPY "+table+" TO STDOUT")
		check(t, err)
		all[table] = text.Bytes()
	}
	if len(all) < 5 {
		t.Fatalf("only %d tables: %v", len(all), tables)
	}
	return all
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	check(t, err)
	return content
}

// pieces are what a search looks for: the aligned pieces of secrets, as they are and
// in hex. Whatever holds a longer piece than twice theirs holds one of them.
type pieces map[string]string

const pieceBytes = 12

// cut cuts a secret up. What is no secret is left out: runs of zeros, and what else
// is known to be kept on purpose.
func (p pieces) cut(what string, secret []byte, known ...[]byte) {
	for i := 0; i+pieceBytes <= len(secret); i += pieceBytes {
		piece := secret[i : i+pieceBytes]
		ordinary := bytes.Count(piece, []byte{0}) > pieceBytes/3
		for _, k := range known {
			ordinary = ordinary || bytes.Contains(k, piece)
		}
		if !ordinary {
			p[string(piece)] = what
			p[hex.EncodeToString(piece)] = what
		}
	}
}

// in counts the pieces that are in some data.
func (p pieces) in(data map[string][]byte) (n int) {
	for _, content := range data {
		for _, size := range []int{pieceBytes, 2 * pieceBytes} {
			for i := 0; i+size <= len(content); i++ {
				if _, found := p[string(content[i:i+size])]; found {
					n++
				}
			}
		}
	}
	return n
}

// secrets are what must not be left of payments.
type secrets struct{ raw, sealed pieces }

func newSecrets(t *testing.T, w *world, key chain.NonceKey, payments []rig.Payment) secrets {
	t.Helper()
	s := secrets{pieces{}, pieces{}}
	for _, p := range payments {
		s.raw.cut("raw", p.Raw, key[:], wallet.PathUSD[:])
	}
	kept := w.payloads(t, payments)
	if len(kept) != len(payments) {
		t.Fatalf("%d of %d payloads are kept before the cancel", len(kept), len(payments))
	}
	for _, sealed := range kept {
		s.sealed.cut("sealed", sealed.Bytes)
		s.sealed.cut("key", sealed.Wrapped)
	}
	return s
}
