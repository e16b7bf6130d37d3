package main_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// The golden rules of a pool of keys. TestTakenOverBehindItsBack and TestFrozenHolder check that
// no two processes send from one address without coordination. Rules two and four are checked in
// every judged world.

// Every transaction has a nonce from the allocator. Expected: each executed transaction of the
// relay's signers was signed for a nonce reserved in the lane's stream before, also after a kill
// at a bad moment. Transactions that another sender makes with the key are found.
func TestNoncesAreAllocated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles)
	s := w.relayer(t, "WATCHTOWER_CRASH_AT=attempts.handed")
	w.ask(t, w.several(0, 4, "killed")...)
	check(t, s.Launch())
	<-s.Ended()
	s = w.relayer(t)
	check(t, s.Start(w.ctx))
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	if strays := w.strays(w.ledger(t), w.events(t)); len(strays) > 0 {
		t.Errorf("nobody has allocated %s", strays)
	}
	w.strange(t, w.wants(t, wallet.Dev(0).Address()))
	clear(w.strangers)
	w.call(t, "evm_mine")
	if strays := w.strays(w.ledger(t), w.events(t)); len(strays) != 1 {
		t.Errorf("one is somebody else's, and %s are found", strays)
	}
}

// allocated checks that the chain has executed only transactions at reserved nonces.
func (w *world) allocated(t *testing.T, ledger *promises.Ledger, all []eventlog.Recorded) {
	t.Helper()
	for _, hash := range w.strays(ledger, all) {
		t.Errorf("the chain has executed %s, for which no lane has a nonce", hash)
	}
}

// strays lists executed transactions without a reserved nonce in a lane.
func (w *world) strays(ledger *promises.Ledger, all []eventlog.Recorded) (strays []chain.Hash) {
	known := map[chain.Hash]bool{}
	for _, r := range all {
		if e, err := lane.Codec().Decode(r.Name, r.Data); err == nil {
			if made, ok := e.(lane.Attempted); ok {
				known[made.Hash] = true // the judge of lanes checks that its nonce was reserved
			}
		}
	}
	for hash := range ledger.Executed() {
		if !known[hash] && !w.strangers[hash] {
			strays = append(strays, hash)
		}
	}
	return strays
}

// The backlog decides which signer gets more. Expected: while no block comes, a busy signer gets
// none of its pool's intents until the others have as many, and a paused signer gets none. When
// it resumes, all are carried out.
func TestBacklogDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1h")
	w.flags = append(without(w.flags, "--lane-poll"), "--lane-poll=5s") // lanes wait as long for each other
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := []client{w.client(t, s)}
	w.still(t)
	w.create(t, c, w.several(0, 6, "busy")...)
	w.becomes(t, "the first is busy", func() bool { return w.inFlight(t)[0] == 6 })
	w.create(t, c, w.forPool(12, "pool")...)
	w.becomes(t, "all have nonces", func() bool { return total(w.inFlight(t)) == 18 })
	if got := w.inFlight(t); got[0] > got[1] || got[0] > got[2] {
		t.Errorf("they have %d", got)
	}
	before := w.inFlight(t)
	w.operator(s).order(t, http.MethodPost, w.key(1)+"/pause", map[string]any{})
	w.create(t, c, w.forPool(6, "more")...)
	w.becomes(t, "all have nonces", func() bool { return total(w.inFlight(t)) == 24 })
	if got := w.inFlight(t); got[1] != before[1] {
		t.Errorf("the paused one has %d, and had %d", got, before)
	}
	w.operator(s).order(t, http.MethodPost, w.key(1)+"/resume", map[string]any{})
	w.goes(t)
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
}

// forPool are intents for any signer of the pool.
func (w *world) forPool(n int, what string) (requests []intent.Request) {
	for i := range n {
		requests = append(requests, w.pool(fmt.Sprintf("%s-%d", what, i)))
	}
	return requests
}

// inFlight returns the number of intents of each signer.
func (w *world) inFlight(t *testing.T) (held [3]int) {
	t.Helper()
	for _, s := range statesOf(t, w.events(t)) {
		for n := range held {
			if s.Place != nil && s.Place.Signer == wallet.Dev(n).Address() {
				held[n]++
			}
		}
	}
	return held
}

func total(held [3]int) int { return held[0] + held[1] + held[2] }

// keysStayIn checks that no private key is in events, files or tables. The process's log is
// checked when it ends.
func (w *world) keysStayIn(t *testing.T, all []eventlog.Recorded) {
	t.Helper()
	secrets := map[string][]byte{}
	for i, key := range keys {
		_, digits, _ := strings.Cut(key, "=")
		secret, err := hex.DecodeString(digits)
		check(t, err)
		secrets[fmt.Sprint("key ", i)] = secret
	}
	w.stayIn(t, secrets, all)
}

// stayIn checks that none of the secrets is in any written data.
func (w *world) stayIn(t *testing.T, secrets map[string][]byte, all []eventlog.Recorded) {
	t.Helper()
	canaries := promises.NewCanaries(secrets)
	look := func(where string, text []byte) {
		watched := canaries.Watch(where)
		_, _ = watched.Write(text) // never fails
		for _, v := range watched.Found() {
			t.Error(v)
		}
	}
	for _, r := range all {
		look(string(r.Stream), r.Data)
	}
	check(t, filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	}))
	if dsn := w.database(); strings.HasPrefix(dsn, "postgres") {
		check(t, w.eachTable(dsn, look))
	}
}

// eachTable calls look with the rows of every table of a database, as text.
func (w *world) eachTable(dsn string, look func(where string, text []byte)) (err error) {
	db, err := pgx.Connect(w.ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(w.ctx))) }()
	names, err := db.Query(w.ctx, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('log', 'work', 'view')`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	if err == nil && len(tables) < 3 {
		err = fmt.Errorf("there are only %d tables", len(tables))
	}
	for _, table := range tables {
		if err != nil {
			break
		}
		var rows pgx.Rows
		if rows, err = db.Query(w.ctx, "SELECT t::text FROM "+table+" t"); err != nil {
			break
		}
		for rows.Next() && err == nil {
			var text string
			err = rows.Scan(&text)
			look(table, []byte(text))
		}
		err = errors.Join(err, rows.Err())
		rows.Close()
	}
	return err
}
