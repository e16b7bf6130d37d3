package auditor_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// harm is one way of tampering with a store.
type harm struct {
	name string
	do   func(t *testing.T, b backend, db *sql.DB)
	is   audit.Fault // the first fault reported
	kept bool        // only seals kept elsewhere reveal it
	// postgres is the first fault reported by Postgres, where it differs: that store records its
	// head.
	postgres *audit.Fault
}

// fault is a fault at an event of a transaction.
func fault(at eventlog.Position, transaction int, version eventlog.Version, what string) audit.Fault {
	return audit.Fault{Position: at, Stream: eventlog.Stream(streamOf(transaction)), Version: version, What: what}
}

func linked(name string) string {
	return name + " does not match its link: it or the event before it in its stream was altered"
}

func sealed(through int) string {
	return fmt.Sprintf("differs from the seal up to position %d: content, order or time was altered", through)
}

func run(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	done, err := db.ExecContext(t.Context(), text, args...)
	check(t, err)
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows: %v", text, n, err)
	}
}

// statement is tampering by one SQL statement.
func statement(text string, args ...any) func(t *testing.T, b backend, db *sql.DB) {
	return func(t *testing.T, b backend, db *sql.DB) {
		run(t, db, strings.ReplaceAll(text, "LATER", b.later), args...)
	}
}

// flipped flips a bit of a column of bytes.
func flipped(column string, pos int64, at func(content []byte) int) func(t *testing.T, b backend, db *sql.DB) {
	return func(t *testing.T, _ backend, db *sql.DB) {
		var content []byte
		check(t, db.QueryRowContext(t.Context(), "SELECT "+column+" FROM events WHERE pos = $1", pos).Scan(&content))
		content = slices.Clone(content)
		content[at(content)] ^= 1
		run(t, db, "UPDATE events SET "+column+" = $1 WHERE pos = $2", content, pos)
	}
}

// swapped swaps the positions of two events.
func swapped(a, b int64) func(t *testing.T, _ backend, db *sql.DB) {
	return func(t *testing.T, _ backend, db *sql.DB) {
		const spare = 5000 // a position far beyond the end
		for _, move := range [][2]int64{{a, spare}, {b, a}, {spare, b}} {
			run(t, db, "UPDATE events SET pos = $1 WHERE pos = $2", move[1], move[0])
		}
	}
}

// harms apply to a log of 32 events and two seals (of 20 events and 12), then 24 events, two
// seals, and 8 unsealed events. Seals are at 33, 34, 59 and 60; one of them was sealed together
// with later events.
func harms() []harm {
	middle := func(content []byte) int { return len(content) / 2 }
	count := func(content []byte) int { return bytes.Index(content, []byte(`"count":`)) + len(`"count":`) }
	return []harm{
		{name: "a byte of data", do: flipped("data", 11, middle), is: fault(11, 1, 3, linked("tx.broadcast.v1"))},
		{name: "the first byte of data", do: flipped("data", 1, func([]byte) int { return 0 }), is: fault(1, 0, 1, linked("tx.accepted.v1"))},
		{name: "a byte of a link", do: flipped("link", 12, middle), is: fault(12, 1, 4, linked("tx.mined.v1"))},
		{name: "a link taken away", do: statement("UPDATE events SET link = NULL WHERE pos = 13"), is: fault(13, 1, 5, "tx.reorged.v1 has lost its link")},
		{name: "a first event's link taken away", do: statement("UPDATE events SET link = NULL WHERE pos = 9"), is: fault(9, 1, 1, sealed(20))},
		{name: "name", do: statement("UPDATE events SET name = 'tx.retired.v1' WHERE pos = 14"), is: fault(14, 1, 6, linked("tx.retired.v1"))},
		{name: "id", do: statement("UPDATE events SET id = (SELECT id FROM events WHERE pos = 1) WHERE pos = 15"), is: fault(15, 1, 7, linked("tx.mined.v1"))},
		{name: "correlation", do: statement("UPDATE events SET correlation = id WHERE pos = 16"), is: fault(16, 1, 8, linked("tx.finalized.v1"))},
		{name: "causation", do: statement("UPDATE events SET causation = NULL WHERE pos = 17"), is: fault(17, 2, 1, linked("tx.accepted.v1"))},
		{name: "actor", do: statement("UPDATE events SET actor = 'Tester' WHERE pos = 18"), is: fault(18, 2, 2, linked("tx.rejected.v1"))},
		{name: "trace", do: statement("UPDATE events SET trace = '' WHERE pos = 19"), is: fault(19, 2, 3, linked("tx.broadcast.v1"))},
		{name: "a microsecond", do: statement("UPDATE events SET at = LATER WHERE pos = 20"), is: fault(20, 2, 4, sealed(20))},
		{name: "version", do: statement("UPDATE events SET version = version + 40 WHERE pos = 21"), is: fault(21, 2, 45, "version 45 follows version 4")},
		{name: "stream", do: statement("UPDATE events SET stream = (SELECT stream FROM events WHERE pos = 1), version = 40 WHERE pos = 22"), is: fault(22, 0, 40, "version 40 follows version 8")},
		{name: "a stream's name", do: statement("UPDATE streams SET name = 'tx-1-0x00' WHERE name = $1", streamOf(1)), is: audit.Fault{Position: 9, Stream: "tx-1-0x00", Version: 1, What: linked("tx.accepted.v1")}},
		{name: "a stream's row", do: statement("DELETE FROM streams WHERE name = $1", streamOf(2)), is: audit.Fault{Position: 17, Version: 1, What: "tx.accepted.v1 has no stream"}},
		{name: "an event removed", do: statement("DELETE FROM events WHERE pos = 11"), is: fault(12, 1, 4, "version 4 follows version 2")},
		{name: "a stream's last event removed", do: statement("DELETE FROM events WHERE pos = 8"), is: fault(9, 1, 1, "before this event 1 events are missing that the seal up to position 20 covers")},
		{name: "a whole stream removed", do: statement("DELETE FROM events WHERE pos BETWEEN 17 AND 24"), is: audit.Fault{Position: 17, What: "4 events are missing that the seal up to position 20 covers"}},
		{name: "events that changed places", do: swapped(8, 9), is: fault(8, 1, 1, sealed(20))},
		{name: "an event put in at the end", do: statement(`INSERT INTO events (pos, stream, version, at, id, name, data, actor, trace)
			SELECT pos + 1, stream, version + 1, at, id, 'tx.retired.v1', data, actor, trace FROM events WHERE pos = (SELECT max(pos) FROM events)`), is: fault(69, 7, 9, "tx.retired.v1 has lost its link")},
		{name: "an event that nobody has sealed", do: flipped("data", 68, middle), is: fault(68, 7, 8, linked("tx.finalized.v1"))},
		{name: "a seal", do: flipped("data", 33, count), is: audit.Fault{Position: 33, Stream: "audit-seals", Version: 1, What: "the seal's signature is wrong: the seal was altered"}},
		{name: "the end cut off before a seal's end", do: statement("DELETE FROM events WHERE pos BETWEEN 55 AND 58"), is: audit.Fault{Position: 55, What: "4 events are missing that the seal up to position 58 covers"}},
		{name: "the end cut off with its seals", do: statement("DELETE FROM events WHERE pos > 40"), is: audit.Fault{Position: 58, What: "the log ends at position 40, but a kept seal covers it up to here: its end was cut off"}, kept: true,
			postgres: &audit.Fault{Position: 41, What: "the log ends at position 40, but its store's last position is 68: the end was cut off"}},
		{name: "all seals removed", do: statement("DELETE FROM events WHERE stream = (SELECT no FROM streams WHERE name = 'audit-seals')"), is: fault(58, 6, 8, "the log up to here differs from a kept seal"), kept: true},
	}
}

// All tampering is found, and reported with position, stream, version and a description.
func TestTampering(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		last := b.lastSeal(t)
		report, err := b.verify(t, auditor.Options{Keys: keys(t), Kept: []audit.Sealed{last}})
		if err != nil || !report.Clean || report.Events != 68 || report.Sealed != last.Through || report.Rest != 68-uint64(last.Through) {
			t.Fatalf("%+v, %v", report, err)
		}
		if found := independent(b.exported(t), keys(t)[0]); len(found) > 0 {
			t.Fatalf("by the documentation: %v", found)
		}
		for _, h := range harms() {
			t.Run(h.name, func(t *testing.T) {
				hurt, db := b.copied(t)
				h.do(t, hurt, db)
				check(t, db.Close())
				options := auditor.Options{Keys: keys(t)}
				if h.kept {
					options.Kept = []audit.Sealed{last}
				}
				report, err := hurt.verify(t, options)
				check(t, err)
				if report.Clean || report.Found == 0 {
					t.Fatalf("nothing was found: %+v", report)
				}
				want := h.is
				if h.postgres != nil && b.name == "postgres" {
					want = *h.postgres
				}
				if d := cmp.Diff(want, report.Faults[0]); d != "" {
					t.Errorf("named (-want +got):\n%s", d)
				}
				if found := independent(hurt.exported(t), keys(t)[0]); len(found) == 0 && !h.kept {
					t.Error("by the documentation all is well")
				}
			})
		}
	})
}

// Only seals by trusted keys count, and a log without any such seal is not reported as clean.
func TestWhoSealed(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		stranger, err := audit.NewSigner(append(make([]byte, 31), 1))
		check(t, err)
		report, err := b.verify(t, auditor.Options{Keys: []audit.Key{stranger.Key()}})
		check(t, err)
		if report.Clean || report.Found == 0 || !strings.Contains(report.Faults[0].What, "another key") || len(report.Unchecked) > 0 {
			t.Errorf("%+v", report)
		}
		report, err = b.verify(t, auditor.Options{})
		if err != nil || !report.Clean || report.Seals[keys(t)[0].String()] == 0 {
			t.Errorf("without a key: %+v, %v", report, err)
		}
		last := b.lastSeal(t)
		last.Signature[0]++
		if _, err := b.verify(t, auditor.Options{Kept: []audit.Sealed{last}}); err == nil {
			t.Error("a kept seal that is not genuine was taken")
		}
		hurt, db := b.copied(t)
		run(t, db, "DELETE FROM events WHERE pos > 32")
		if b.name == "postgres" {
			run(t, db, "UPDATE head SET pos = 32")
		}
		check(t, db.Close())
		report, err = hurt.verify(t, auditor.Options{Keys: keys(t)})
		if err != nil || report.Clean || report.Found > 0 || len(report.Unchecked) != 1 {
			t.Errorf("without seals: %+v, %v", report, err)
		}
	})
}
