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
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// engine is the store's flag value: a directory or a URL.
func (w *world) engine() (dir, dsn string) {
	if dir, embedded := strings.CutPrefix(w.store[1], "embedded:"); embedded {
		return dir, ""
	}
	if w.eventsURL() != "" { // the database beside the event store
		return "", w.store[3]
	}
	return "", w.store[1]
}

// payloads returns the sealed payloads of these payments that a stopped service still stores.
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

// data is all data stored by a stopped service: each file of the embedded store, or each
// Postgres table as dumped.
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

// dump copies every table that stores rows itself, as pg_dump does.
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

// pieces are the aligned pieces of secrets to search for, raw and in hex. Data with a part of a
// secret of at least twice the piece length contains one of them.
type pieces map[string]string

const pieceBytes = 12

// cut divides a secret into pieces. It omits runs of zeros, and pieces of known data that is
// kept on purpose.
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

// in counts the pieces found in data.
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

// secrets are the data of payments that must not remain.
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
