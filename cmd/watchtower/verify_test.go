package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// verify runs watchtower verify on a store.
func (w *world) verify(t *testing.T, store []string, more ...string) (report verify.Report, status int) {
	t.Helper()
	args := append(append([]string{"verify", "--json", "--quiet"}, store...), more...)
	cmd := exec.CommandContext(w.ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	if out.Len() == 0 {
		t.Logf("verify: %s", errs.String())
		return report, status
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s\n%s", err, out.String(), errs.String())
	}
	return report, status
}

// clean checks that a store verifies without findings.
func (w *world) clean(t *testing.T, more ...string) verify.Report {
	t.Helper()
	report, status := w.verify(t, w.store, more...)
	if status != 0 || !report.Clean {
		t.Errorf("verify ended with %d: %v %v %v", status, report.Broken, report.Violations, report.Unchecked)
	}
	return report
}

// A store verifies while its service runs and after it has stopped. Each kind of damage is found
// and reported under the promise that it breaks. Verifying changes nothing.
func TestVerify(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		settled, _ := rig.Payments(9600, 6)
		w.submit(t, s, settled, 4)
		_, open := subscription(wallet.Dev(4), 1, 1, 3) // nonce 0 is missing
		key, unwanted := subscription(wallet.Dev(5), 2, 1, 2)
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, append(raws(open), raws(unwanted)...)...)
		check(t, err)
		_, err = rig.Cancel(w.ctx, s.URL, wallet.Dev(5), key)
		check(t, err)
		w.delivered(t, s.URL, settled, rig.Sealed)
		for _, p := range unwanted {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, canceled)
			check(t, err)
		}
		w.clean(t, "--chains", w.chains) // while the service runs
		check(t, s.Stop(w.ctx))
		before := w.data(t)
		report := w.clean(t, "--chains", w.chains)
		if got := report.Chains[rig.TempoChain.String()]; got.Verdicts != 6 || got.False != 0 {
			t.Errorf("of 6 sealed verdicts the chain was asked about %+v", got)
		}
		want := map[string]uint64{verify.Transactions: 11, verify.Groups: 2, verify.Members: 5, verify.Claims: 0}
		for table, rows := range want {
			if d := report.Drift[table]; d.Rows != rows || d.Total() != 0 {
				t.Errorf("%s: %+v, want %d rows", table, d, rows)
			}
		}
		if p := report.Payloads; p.Needed != 3 || p.Erased != 2 {
			t.Errorf("signed bytes: %+v", p)
		}
		if w.changed(before, w.data(t)) {
			t.Error("verify has changed the store")
		}
		t.Run("what is derived", func(t *testing.T) { w.damaged(t, derived(settled, open, unwanted)) })
		if w.eventsURL() == "" { // otherwise the log is in no table that a statement could change
			t.Run("what is not", func(t *testing.T) { w.damaged(t, recorded(settled, open)) })
		}
		t.Run("the chain", func(t *testing.T) { w.otherChain(t, len(settled)) })
	})
}

// changed reports whether any stored data differs. SQLite's shared memory and an empty
// write-ahead log do not count.
func (w *world) changed(before, after map[string][]byte) bool {
	for name, content := range before {
		if !strings.HasSuffix(name, "-shm") && !strings.HasSuffix(name, "-wal") && !bytes.Equal(content, after[name]) {
			return true
		}
	}
	return false
}

// damage is a change to a store, and the violation that verify reports for it.
type damage struct {
	breaks promises.Number
	says   string // a part of the violation
	file   string // in the embedded store
	sql    string // with the table names of the embedded store
}

// derived damages read models, the queue and signed bytes, each time other rows.
func derived(settled, open, unwanted []rig.Payment) []damage {
	blob := func(p rig.Payment) string { return fmt.Sprintf("x'%x'", p.Hash[:]) }
	where := func(p rig.Payment) string { return " WHERE hash = " + blob(p) }
	stranger := rig.Payment{Hash: chain.Hash{7}}
	const some = "chain, %s, position + %d, version, sender, nonce_key, status, data FROM transactions"
	return []damage{
		{promises.P18, settled[0].Hash.String() + ": status", "view.db", "UPDATE transactions SET status = 'expired'" + where(settled[0])},
		{promises.P18, settled[1].Hash.String() + ": data", "view.db", "UPDATE transactions SET data = (SELECT data FROM transactions" + where(open[0]) + ")" + where(settled[1])},
		{promises.P18, unwanted[0].Hash.String() + `: data is "cannot be read: `, "view.db", "UPDATE transactions SET data = x'7b'" + where(unwanted[0])},
		{promises.P18, "transactions has no row 42431/" + settled[2].Hash.String(), "view.db", "DELETE FROM transactions" + where(settled[2])},
		{promises.P18, "transactions has a row 42431/" + stranger.Hash.String(), "view.db", "INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, status, data) SELECT " +
			fmt.Sprintf(some, blob(stranger), 999999) + where(settled[3])},
		{promises.P18, "group_members has no row " + open[0].Hash.String(), "view.db", "DELETE FROM group_members" + where(open[0])},
		{promises.P18, "groups, row group-", "view.db", "UPDATE groups SET end_at = end_at + 1"},
		{promises.P18, "groups has 1 rows without an event", "view.db", "INSERT INTO groups (chain, sender, group_id, nonce_key, position, end_at) SELECT chain, sender, sender, nonce_key, position, end_at FROM groups LIMIT 1"},
		{promises.P18, "group_claims has a row " + settled[3].Hash.String(), "view.db", "INSERT INTO group_claims (hash, chain, sender, access_key, position) SELECT hash, chain, sender, sender, position FROM transactions" + where(settled[3])},
		{promises.P18, "the checkpoint of groups is", "view.db", "UPDATE readers SET position = position + 1000000 WHERE name = 'groups'"},
		{promises.P2, open[1].Hash.String() + ": it is", "work.db", "DELETE FROM work" + where(open[1])},
		{promises.P2, "the queue has it as watched", "work.db", "UPDATE work SET phase = 'watched', parked = PARKED" + where(open[2])},
		{promises.P2, open[0].Hash.String() + ": it may have to be sent, but its signed bytes are missing", "events.db", "DELETE FROM payloads" + where(open[0])},
		{promises.P2, open[1].Hash.String() + ": it may have to be sent, but the data key", "keys.db", "DELETE FROM keys" + where(open[1])},
		{promises.P23, unwanted[0].Hash.String() + ": its signed bytes were erased, but their data key still exists", "keys.db", "UPDATE keys SET hash = " + blob(unwanted[0]) + where(settled[4])},
		{promises.P23, unwanted[1].Hash.String() + ": its signed bytes should be erased, but still exist", "events.db", "UPDATE payloads SET hash = " + blob(unwanted[1]) + where(settled[5])},
	}
}

// recorded damages the log, each time another stream.
func recorded(settled, open []rig.Payment) []damage {
	stream := func(p rig.Payment) string { return "'tx-" + rig.TempoChain.String() + "-" + p.Hash.String() + "'" }
	of := func(p rig.Payment) string { return " stream = (SELECT no FROM streams WHERE name = " + stream(p) + ")" }
	return []damage{
		{promises.P25, settled[0].Hash.String(), "events.db", "DELETE FROM events WHERE version = 2 AND" + of(settled[0])},
		{promises.P25, "events are missing between positions", "events.db", "DELETE FROM events WHERE pos = (SELECT max(pos) FROM events WHERE" + of(settled[1]) + ")"},
		{promises.P30, settled[2].Hash.String(), "events.db", "UPDATE events SET name = 'tx.teleported.v1' WHERE version = 2 AND" + of(settled[2])},
		{promises.P11, settled[3].Hash.String(), "events.db", "UPDATE events SET data = REPLACE(data, '\"verdict\":\"executed\"', '\"verdict\":\"expired\"') WHERE name = 'tx.finalized.v1' AND" + of(settled[3])},
		{promises.P18, settled[4].Hash.String() + ": data", "events.db", "UPDATE events SET data = REPLACE(data, '\"gasUsed\":', '\"gasUsed\":1') WHERE name = 'tx.mined.v1' AND" + of(settled[4])},
		{promises.P25, settled[5].Hash.String(), "events.db", "UPDATE events SET id = (SELECT id FROM events WHERE pos = 1) WHERE version = 2 AND" + of(settled[5])},
		{promises.P30, "has no stream", "events.db", "DELETE FROM streams WHERE name = " + stream(open[0])},
	}
}

// damaged damages a copy of the store, and checks that verify finds all of it.
func (w *world) damaged(t *testing.T, all []damage) {
	dir, dsn := w.engine()
	var store []string
	if dir != "" {
		store = w.damagedFiles(t, dir, all)
	} else {
		store = w.damagedDatabase(t, dsn, all)
	}
	report, status := w.verify(t, store)
	if status != 1 || report.Clean {
		t.Errorf("verify ended with %d", status)
	}
	for _, d := range all {
		told := slices.ContainsFunc(report.Violations, func(v promises.Violation) bool {
			return v.Promise == d.breaks && strings.Contains(v.String(), d.says)
		})
		if !told {
			t.Errorf("no violation of %s says %q", d.breaks, d.says)
		}
	}
	if t.Failed() {
		for _, v := range report.Violations {
			t.Log(v)
		}
	}
}

func (w *world) damagedFiles(t *testing.T, dir string, all []damage) []string {
	t.Helper()
	copied := t.TempDir()
	check(t, os.CopyFS(copied, os.DirFS(dir)))
	for _, d := range all {
		db, err := sql.Open("sqlite", filepath.Join(copied, d.file))
		check(t, err)
		text := strings.ReplaceAll(strings.ReplaceAll(d.sql, "PARKED", "0"), "REPLACE(data, ", "CAST(replace(CAST(data AS TEXT), ")
		if strings.Contains(text, "CAST(") {
			text = strings.Replace(text, ") WHERE", ") AS BLOB) WHERE", 1)
		}
		execute(t, text, func(text string) (int64, error) {
			done, err := db.ExecContext(w.ctx, text)
			if err != nil {
				return 0, err
			}
			return done.RowsAffected()
		})
		check(t, db.Close())
	}
	return []string{"--store", "embedded:" + copied}
}

func (w *world) damagedDatabase(t *testing.T, dsn string, all []damage) []string {
	t.Helper()
	copied := testenv.Postgres(t)
	admin, err := pgx.Connect(w.ctx, testenv.Need(t, testenv.PostgresVar))
	check(t, err)
	defer admin.Close(context.Background()) //nolint:errcheck // the statements have been run
	name := func(dsn string) string { return dsn[strings.LastIndex(dsn, "/")+1:] }
	for _, text := range []string{"DROP DATABASE " + name(copied), "CREATE DATABASE " + name(copied) + " TEMPLATE " + name(dsn)} {
		_, err := admin.Exec(w.ctx, text)
		check(t, err)
	}
	conn, err := pgx.Connect(w.ctx, copied)
	check(t, err)
	defer conn.Close(context.Background()) //nolint:errcheck // the statement has been run
	_, err = conn.Exec(w.ctx, "SET search_path = view, log, work")
	check(t, err)
	postgres := strings.NewReplacer("x'", `'\x`, " work ", " queue ", " keys ", " payload_keys ", "PARKED", "false", "REPLACE(data, ", "convert_to(replace(convert_from(data, 'UTF8'), ")
	for _, d := range all {
		text := postgres.Replace(d.sql)
		if strings.Contains(text, "convert_to(") {
			text = strings.Replace(text, ") WHERE", "), 'UTF8') WHERE", 1)
		}
		execute(t, text, func(text string) (int64, error) {
			done, err := conn.Exec(w.ctx, text)
			return done.RowsAffected(), err
		})
	}
	if w.eventsURL() != "" { // the log is elsewhere, and is not copied
		return []string{"--store", w.eventsURL(), "--database", copied}
	}
	return []string{"--store", copied}
}

// execute runs a statement that must change at least one row.
func execute(t *testing.T, text string, run func(text string) (int64, error)) {
	t.Helper()
	n, err := run(text)
	if err != nil || n == 0 {
		t.Fatalf("%s changed %d rows: %v", text, n, err)
	}
}

// otherChain makes the chain replace final blocks, while no service runs.
func (w *world) otherChain(t *testing.T, verdicts int) {
	w.call(t, "evm_setIntervalMining", 0)
	w.observe(t)
	var head string
	check(t, rig.Call(w.ctx, w.chain.URL(), &head, "eth_blockNumber"))
	height, err := strconv.ParseUint(strings.TrimPrefix(head, "0x"), 16, 64)
	check(t, err)
	w.call(t, "anvil_reorg", height, []any{})
	w.call(t, "evm_mine")
	report, status := w.verify(t, w.store, "--chains", w.chains)
	if status != 1 || report.Broken[promises.P11] != verdicts {
		t.Errorf("verify ended with %d, found %v, want %d false verdicts: %v", status, report.Broken, verdicts, report.Violations)
	}
}

// A store that cannot be verified is not reported as clean.
func TestVerifyWhatCannotBe(t *testing.T) {
	w := &world{ctx: t.Context()}
	empty := t.TempDir()
	for name, store := range map[string]string{
		"no folder": "embedded:" + filepath.Join(empty, "nothing"), "an empty folder": "embedded:" + empty,
		"memory": "embedded::memory:", "no server": "postgres://127.0.0.1:1/nothing",
	} {
		if report, status := w.verify(t, []string{"--store", store}); status != 2 || report.Clean {
			t.Errorf("%s: ended with %d, %+v", name, status, report)
		}
	}
	made := 0
	check(t, filepath.WalkDir(empty, func(string, fs.DirEntry, error) error { made++; return nil }))
	if made != 1 {
		t.Errorf("%d files were made", made-1)
	}
}
