package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	figures "github.com/tempo-watchtower/watchtower/infra/metrics/relay"
)

// logged returns the lines that a relay logs while do reports facts to it, without their times.
func logged(t *testing.T, level slog.Level, facts bool, do func(r *relay)) (lines []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	r := &relay{
		in:  &delivery.App{Settings: delivery.Settings{Holder: "b", LogFacts: facts}},
		log: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})), metrics: figures.New(metrics.New(""), time.Now),
	}
	r.intents.Codec, r.lanes.Codec = intent.Codec(), lane.Codec()
	do(r)
	for line := range strings.Lines(out.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		delete(l, "time")
		lines = append(lines, l)
	}
	return lines
}

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// tellIntent reports an intent that is requested, assigned, signed and refused.
func tellIntent(r *relay) {
	at := time.Unix(1_800_000_000, 0)
	var s intent.State
	for _, fact := range []intent.Event{
		intent.Requested{ID: chain.IntentID{1}, Request: intent.Request{Chain: 7}, Origin: intent.Origin{Correlation: eventlog.ID{1, 15: 2}, Trace: trace}, At: at},
		intent.Assigned{Sequence: 1, Assignment: 1, Place: intent.Place{Signer: chain.Address{2}, Nonce: 5}, Token: 3, At: at},
		intent.Attempted{Sequence: 2, Assignment: 1, Attempt: 1, Kind: intent.First, Hash: chain.Hash{4}, At: at},
		intent.Failed{Sequence: 3, Reason: intent.Refused, Detail: "no", At: at},
	} {
		before := s
		s = s.Evolve(fact)
		r.observedIntent(handler.Told[intent.State, intent.Event]{Before: before, After: s, Facts: []intent.Event{fact}, Meta: eventlog.Meta{Actor: "relayer"}})
	}
}

// Each step of an intent is a line with the request and the trace that caused it, and from its nonce
// on with the signer and the token: at info with log.facts, else at debug.
func TestIntentFactsAreLogged(t *testing.T) {
	common := func(level, event, status string, more map[string]any) map[string]any {
		l := map[string]any{
			"level": level, "msg": "recorded", "event": event, "intent": chain.IntentID{1}.String(), "chain": "7", "status": status, "actor": "relayer",
			"request": "01000000-0000-0000-0000-000000000002", "trace": trace,
		}
		for name, value := range more {
			l[name] = value
		}
		return l
	}
	place := func(more map[string]any) map[string]any {
		more["signer"], more["nonceKey"], more["nonce"] = chain.Address{2}.String(), chain.NonceKey{}.String(), 5.0
		return more
	}
	end := common("INFO", "intent.failed.v1", "failed", place(map[string]any{"reason": "refused", "detail": "no"}))
	all := []map[string]any{
		common("INFO", "intent.requested.v1", "waiting", nil),
		common("INFO", "intent.assigned.v1", "assigned", place(map[string]any{"token": 3.0, "assignment": 1.0})),
		common("INFO", "intent.attempted.v1", "submitted", place(map[string]any{"tx": chain.Hash{4}.String(), "kind": "first", "attempt": 1.0})),
		end,
	}
	if d := cmp.Diff(all, logged(t, slog.LevelInfo, true, tellIntent)); d != "" {
		t.Errorf("with log.facts (-want +logged):\n%s", d)
	}
	if d := cmp.Diff([]map[string]any{end}, logged(t, slog.LevelInfo, false, tellIntent)); d != "" {
		t.Errorf("without log.facts (-want +logged):\n%s", d)
	}
	if n := len(logged(t, slog.LevelDebug, false, tellIntent)); n != len(all) {
		t.Errorf("at debug %d lines, want %d", n, len(all))
	}
}

// Each step of a lane is a line with the signer and the holder's token: one for each nonce, with its
// intent, and for what nodes said with their names.
func TestLaneFactsAreLogged(t *testing.T) {
	id := chain.Sequence{Chain: 7, Sender: chain.Address{2}}
	witness := lane.Witness{Nonce: 4, Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a", "b"}, Needed: 2, Asked: 2}
	got := logged(t, slog.LevelInfo, true, func(r *relay) {
		var s lane.State
		for _, c := range []lane.Command{
			lane.Open{Holder: "b", Token: 1}, lane.Advance{Token: 1, Witness: witness},
			lane.Reserve{Token: 1, Intents: []chain.IntentID{{1}, {2}}, Budget: 9},
		} {
			facts, err := s.Decide(c)
			if err != nil {
				t.Fatal(err)
			}
			before := s
			for _, f := range facts {
				s = s.Evolve(f)
			}
			r.observedLane(handler.Told[lane.State, lane.Event]{Stream: lane.Stream(id), Before: before, After: s, Facts: facts})
		}
	})
	line := func(event string, more map[string]any) map[string]any {
		more["level"], more["msg"], more["event"], more["chain"] = "INFO", "recorded", event, "7"
		more["signer"], more["nonceKey"], more["token"] = chain.Address{2}.String(), chain.NonceKey{}.String(), 1.0
		return more
	}
	want := []map[string]any{
		line("lane.opened.v1", map[string]any{"holder": "b", "was": ""}),
		line("lane.advanced.v1", map[string]any{"nonce": 4.0, "node": []any{"a", "b"}}),
		line("lane.reserved.v1", map[string]any{"nonce": 4.0, "intent": chain.IntentID{1}.String()}),
		line("lane.reserved.v1", map[string]any{"nonce": 5.0, "intent": chain.IntentID{2}.String()}),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +logged):\n%s", d)
	}
}
