package auditor_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestLives(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		b.look(t, func(s auditor.Source) {
			shown(t, s)
			replayed(t, s)
			exports(t, s)
		})
	})
}

// shown checks the reason, the actor and the cause of each event.
func shown(t *testing.T, s auditor.Source) {
	name, err := auditor.Subject(t.Context(), s, hashOf(3).String(), []chain.ID{1, testChain}, nil)
	check(t, err)
	steps, err := auditor.Show(t.Context(), s, auditor.Life{Stream: name, Plan: tx.DefaultSchedule()})
	check(t, err)
	why := []string{
		"accepted for delivery. Nothing is sent before 2027-01-15T08:03:00Z",
		"Attempt 1 was made because its time had come. Result: no node accepted the bytes: a transaction before it in its sequence is missing (\"nonce too high\"). It is tried again when the transaction before it is mined",
		"Attempt 4 was made because of the result of attempt 1: no node accepted the bytes: a transaction before it in its sequence is missing (\"nonce too high\"). The 2 attempts between",
		"Block 7 contains it: it was executed",
		"Block 7, on which its verdict rested, has left the chain. It is sent again.",
		"Attempt 5 was made because block 7, on which its verdict rested, has left the chain. Result: a response was lost, so a node may have the bytes: the node could not be reached in time (\"timeout\").",
		"Block 8 contains it",
		"Block 8 is final: the verdict executed is sealed.",
	}
	if len(steps) != len(why) {
		t.Fatalf("%d steps", len(steps))
	}
	for i, s := range steps {
		if !strings.Contains(s.Why, why[i]) {
			t.Errorf("step %d: %s\nwant %s", i+1, s.Why, why[i])
		}
		if s.Meta.Actor != "tester" || !strings.HasPrefix(s.Cause, "event 09") || len(s.Changed) == 0 {
			t.Errorf("step %d: %+v", i+1, s)
		}
	}
	if a := steps[1].Answers; len(a) != 1 || a[0].Endpoint != "node-a" {
		t.Errorf("answers: %v", a)
	}
	if !slices.ContainsFunc(steps[3].Changed, func(c auditor.Change) bool { return c.String() == `Status: "broadcasting" → "executed"` }) {
		t.Errorf("changed: %v", steps[3].Changed)
	}
	for text, chains := range map[string][]chain.ID{hashOf(3).String(): {1}, hashOf(99).String(): {testChain}, "tx-1": nil, "0x12/0x34": {1}} {
		if _, err := auditor.Subject(t.Context(), s, text, chains, nil); err == nil {
			t.Errorf("%s was found on %v", text, chains)
		}
	}
}

// replayed checks the state at a version, a position and a time.
func replayed(t *testing.T, s auditor.Source) {
	life := auditor.Life{Stream: tx.Stream(testChain, hashOf(1))}
	var all []auditor.Moment
	for v := eventlog.Version(1); v <= 8; v++ {
		m, err := auditor.Replay(t.Context(), s, life, auditor.Until{Version: v})
		check(t, err)
		all = append(all, m)
		byPosition, err := auditor.Replay(t.Context(), s, life, auditor.Until{Point: auditor.Point{Position: 8 + eventlog.Position(v)}})
		check(t, err)
		byTime, err := auditor.Replay(t.Context(), s, life, auditor.Until{Point: auditor.Point{Time: m.At}})
		check(t, err)
		if m.Version != v || byPosition.Version != v || byTime.Version < v {
			t.Errorf("version %d: by position %d, by time %d", m.Version, byPosition.Version, byTime.Version)
		}
	}
	for v, status := range []tx.Status{tx.StatusQueued, tx.StatusRetry, tx.StatusBroadcasting, tx.StatusExecuted, tx.StatusBroadcasting, tx.StatusRetry, tx.StatusExecuted, tx.StatusExecuted} {
		if is := all[v].State.(tx.State); is.Status != status || is.Sealed != (v == 7) {
			t.Errorf("version %d: %s, sealed %t", v+1, is.Status, is.Sealed)
		}
	}
	for says, until := range map[string]auditor.Until{
		"did not exist at that point: it begins at position 9": {Point: auditor.Point{Time: time.Unix(1, 0)}},
		"did not exist at that point":                          {Point: auditor.Point{Position: 8}},
		"has no version 9 yet: its last is 8":                  {Version: 9},
		"position 1000000 does not exist yet":                  {Point: auditor.Point{Position: 1_000_000}},
	} {
		if none, err := auditor.Replay(t.Context(), s, life, until); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("as of %+v: %+v, %v, want %q", until, none, err, says)
		}
	}
	if _, err := auditor.ParseUntil(1, 2, ""); err == nil {
		t.Error("two points were taken")
	}
}

// exports checks that an export includes both its end points.
func exports(t *testing.T, s auditor.Source) {
	write := func(sel auditor.Selection) (uint64, string) {
		var out bytes.Buffer
		n, err := auditor.Export(t.Context(), s, sel, &out)
		check(t, err)
		return n, out.String()
	}
	point := func(text string) auditor.Point {
		p, err := auditor.ParsePoint(text)
		check(t, err)
		return p
	}
	n, text := write(auditor.Selection{From: point("10"), To: point("20"), Stream: streamOf(1)})
	if n != 7 || strings.Count(text, "\n") != 7 {
		t.Errorf("%d events: %s", n, text)
	}
	var first auditor.Line
	check(t, json.Unmarshal([]byte(strings.SplitAfter(text, "\n")[0]), &first))
	if first.Position != 10 || first.Version != 2 || first.Raw != nil || first.Meta.Link.IsZero() {
		t.Errorf("%+v", first)
	}
	if n, _ = write(auditor.Selection{}); n != 68 {
		t.Errorf("%d events in all", n)
	}
	if n, _ = write(auditor.Selection{From: auditor.Point{Time: first.At}, To: auditor.Point{Time: first.At}}); n == 0 {
		t.Error("nothing at the time of an event")
	}
	if n, _ = write(auditor.Selection{To: point("2000-01-01T00:00:00Z")}); n != 0 {
		t.Errorf("%d events before the first", n)
	}
	n, text = write(auditor.Selection{From: point("1"), To: point("3"), CSV: true})
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || n != 3 || len(rows) != 4 || rows[0][0] != "position" || rows[3][5] != "tx.broadcast.v1" {
		t.Errorf("%v: %v", rows, err)
	}
	if _, err := auditor.ParsePoint("yesterday"); err == nil {
		t.Error("yesterday was taken for a point")
	}
}
