package main_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/commands/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// subscription signs the payments of one group, from a nonce on. Each is worth one
// unit and, unless the chain has come to its nonce, cannot be mined.
func subscription(owner wallet.Key, series byte, first, n uint64) (key chain.NonceKey, payments []rig.Payment) {
	key = chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 0x01, 0x02, 15: series, 19: 1}
	to := chain.Address{0: 0x78, 19: series}
	for nonce := first; nonce < first+n; nonce++ {
		payments = append(payments, rig.Pay(owner, wallet.Tempo{
			NonceKey: key, Nonce: nonce, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
		}))
	}
	return key, payments
}

func canceled(t rig.Transaction) bool {
	return t.Status == "canceled_locally" && t.Canceled && t.Erased
}

func raws(payments []rig.Payment) (all [][]byte) {
	for _, p := range payments {
		all = append(all, p.Raw)
	}
	return all
}

// After a cancel no piece of the signed bytes, nor of what they were sealed into, nor
// of the keys to that, is in the store's files, in a dump of it, or in the log. What
// is submitted again is not revived; what is mined all the same is executed.
func TestCanceledBytesAreGone(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		owner := wallet.Dev(3)
		key, payments := subscription(owner, 1, 1, 20) // nonce 0 is missing
		s := w.service(t)
		s.Args = append(s.Args, "--log-level", "debug")
		check(t, s.Start(w.ctx))
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		_, err = rig.Await(w.ctx, s.URL, payments[0].Hash, func(t rig.Transaction) bool { return t.Attempts > 0 })
		check(t, err)
		check(t, s.Stop(w.ctx))

		secrets := newSecrets(t, w, key, payments)
		if n := secrets.sealed.in(w.data(t)); n == 0 {
			t.Fatal("the search does not even find what is kept")
		}

		check(t, s.Start(w.ctx))
		answer, err := rig.Cancel(w.ctx, s.URL, owner, key)
		check(t, err)
		if answer.Canceled != len(payments) {
			t.Errorf("%d of %d are canceled: %+v", answer.Canceled, len(payments), answer)
		}
		sent := w.proxy.Sent()
		results, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		for _, r := range results {
			if !r.OK || !r.AlreadyKnown || r.Status != "canceled_locally" {
				t.Errorf("submitted again: %+v", r)
			}
		}
		s.Kill() // a graceful stop would tidy up

		data := w.data(t)
		data["the log"] = readFile(t, s.Log)
		if n := secrets.raw.in(data) + secrets.sealed.in(data); n > 0 {
			t.Errorf("%d pieces of canceled transactions are left", n)
		}
		w.minedAllTheSame(t, s, owner, key, payments)
		for hash, n := range w.proxy.Sent() {
			if n != sent[hash] {
				t.Errorf("%s was sent %d times after it was canceled", hash, n-sent[hash])
			}
		}
	})
}

// minedAllTheSame has others hand the first of the canceled payments to the node.
func (w *world) minedAllTheSame(t *testing.T, s *rig.Service, owner wallet.Key, key chain.NonceKey, payments []rig.Payment) {
	t.Helper()
	check(t, s.Start(w.ctx))
	missing := rig.Pay(owner, wallet.Tempo{NonceKey: key, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)}})
	check(t, rig.Call(w.ctx, w.chain.URL(), nil, "anvil_dropAllTransactions")) // it may have them still
	for _, raw := range [][]byte{missing.Raw, payments[0].Raw} {
		check(t, rig.Call(w.ctx, w.chain.URL(), nil, "eth_sendRawTransaction", hexOf(raw)))
	}
	got, err := rig.Await(w.ctx, s.URL, payments[0].Hash, rig.Executed)
	check(t, err)
	if !got.Canceled || !got.Erased {
		t.Errorf("mined all the same: %+v", got)
	}
	for _, p := range payments[1:] {
		if got, err := rig.Get(w.ctx, s.URL, p.Hash); err != nil || !canceled(got) {
			t.Errorf("the others: %+v, %v", got, err)
		}
	}
	check(t, s.Stop(w.ctx))
}

// The service is killed in the middle of a cancel. When it runs again all are
// canceled and their bytes are gone, though nobody asks again.
func TestKilledWhileCanceling(t *testing.T) {
	passes := map[string]string{"cancel.recorded": "1", "cancel.member": "7", "cancel.erased": "1"}
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		for i, point := range canceler.CrashPoints() {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, store, "--block-time", "1")
				owner := wallet.Dev(4)
				key, payments := subscription(owner, byte(2+i), 1, 20)
				s := w.service(t, "WATCHTOWER_CRASH_AT="+point+":"+passes[point])
				check(t, s.Start(w.ctx))
				_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
				check(t, err)
				if _, err := rig.Cancel(w.ctx, s.URL, owner, key); err == nil {
					t.Fatal("answered, though it should have been killed")
				}
				select {
				case <-s.Ended():
				case <-w.ctx.Done():
					t.Fatalf("the service never came to %s", point)
				}
				s.Env = nil
				check(t, s.Start(w.ctx))
				for _, p := range payments {
					_, err := rig.Await(w.ctx, s.URL, p.Hash, canceled)
					check(t, err)
				}
				answer, err := rig.Cancel(w.ctx, s.URL, owner, key)
				if err != nil || answer.Canceled != len(payments) {
					t.Errorf("asked again: %d, %v", answer.Canceled, err)
				}
				check(t, s.Stop(w.ctx))
				for _, sealed := range w.payloads(t, payments) {
					t.Errorf("the bytes of %s are kept", sealed.Hash)
				}
			})
		}
	})
}

// engine is the store's flag: embedded:DIR or a URL.
func (w *world) engine() (dir, dsn string) {
	if dir, embedded := strings.CutPrefix(w.store[1], "embedded:"); embedded {
		return dir, ""
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

// What is settled is forgotten in two steps: the bytes, then the rows, by an event.
// Read models made again from the log do not bring the rows back.
func TestRetiredStaysAway(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		payments, _ := rig.Payments(9100, 3)
		s := w.service(t)
		args := append(s.Args, "--retention-bytes", "1s", "--retention-rows")
		s.Args = append(args, "1s")
		check(t, s.Start(w.ctx))
		load(w.ctx, s, payments, 1)
		for _, p := range payments {
			w.retired(t, s.URL, p.Hash)
		}
		check(t, s.Stop(w.ctx))
		for _, sealed := range w.payloads(t, payments) {
			t.Errorf("the bytes of %s are kept", sealed.Hash)
		}
		w.forget(t)

		fresh, _ := rig.Payments(9101, 1)
		s.Args = append(slices.Clone(args), "1h") // the fresh one is to be seen
		check(t, s.Start(w.ctx))
		load(w.ctx, s, fresh, 1)
		w.delivered(t, s.URL, fresh, rig.Sealed) // the read models have come that far
		for _, p := range payments {
			w.retired(t, s.URL, p.Hash)
		}
		check(t, s.Stop(w.ctx))
	})
}

// retired waits until a transaction is unknown though its events are there.
func (w *world) retired(t *testing.T, url string, hash chain.Hash) {
	t.Helper()
	for {
		_, err := rig.Get(w.ctx, url, hash)
		if err != nil && strings.Contains(err.Error(), "404") {
			break
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("%s was never retired: %v", hash, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	events, err := rig.Events(w.ctx, url, hash)
	check(t, err)
	var names []string
	for _, e := range events[max(len(events)-2, 0):] {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "tx.payload_erased.v1 tx.retired.v1" {
		t.Errorf("the last events of %s are %s", hash, got)
	}
}

// forget empties everything that follows from the log.
func (w *world) forget(t *testing.T) {
	t.Helper()
	dir, dsn := w.engine()
	if dir != "" {
		for _, pattern := range []string{"work.db*", "view.db*"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			check(t, err)
			for _, file := range files {
				check(t, os.Remove(file))
			}
		}
		return
	}
	db, err := pgx.Connect(w.ctx, dsn)
	check(t, err)
	defer db.Close(w.ctx) //nolint:errcheck // the test is over with it
	_, err = db.Exec(w.ctx, `DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
			WHERE schemaname IN ('work', 'view') AND tablename <> 'view_migrations' LOOP
			EXECUTE 'TRUNCATE ' || t || ' CASCADE';
		END LOOP; END $$`)
	check(t, err)
}
