package history_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/history"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every event of the relay that was ever written is explained in a sentence, and the state after it is
// an object in JSON.
func TestEveryEventIsExplained(t *testing.T) {
	streams := map[string]eventlog.Stream{
		"intent": intent.Stream(chain.IntentID{1}), "lane": lane.Stream(chain.Sequence{Chain: 1}), "signer": signer.Stream(1, chain.Address{1}),
		"budget": budget.Stream(1), "safeguard": safeguard.Stream,
	}
	explained := 0
	for folder, stream := range streams {
		files, err := filepath.Glob(filepath.Join("../../../domain/relay", folder, "testdata/events/*.json"))
		check(t, err)
		for _, k := range history.Kinds() {
			if !strings.HasPrefix(string(stream), k.Prefix) {
				continue
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				check(t, err)
				name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
				f := k.New()
				why, err := f.Add(eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: stream})
				if err != nil || !strings.HasSuffix(why, ".") || strings.Contains(why, "%!") {
					t.Errorf("%s is explained by %q, %v", name, why, err)
				}
				var shown map[string]any
				text, err := json.Marshal(f.State())
				if check(t, err); json.Unmarshal(text, &shown) != nil {
					t.Errorf("the state after %s is shown as %s", name, text)
				}
				explained++
			}
		}
	}
	if explained < 40 {
		t.Errorf("%d events", explained)
	}
}

// A lane, a signer and a chain's budget are found by their names, and shown as of any version and
// position, with the reason for the last event.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	store, at := db.Log(), time.Unix(1_800_000_000, 0).UTC()
	a := chain.Address{1}
	id := chain.Sequence{Chain: 7, Sender: a}
	witness := lane.Witness{Nonce: 4, Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}
	lanes := handler.Handler[lane.State, lane.Command, lane.Event]{Store: store, Codec: lane.Codec(), Random: rand.Reader}
	for _, c := range []lane.Command{
		lane.Open{Holder: "host-1", Token: 1, At: at}, lane.Advance{Token: 1, Witness: witness, At: at},
		lane.Reserve{Token: 1, Intents: []chain.IntentID{{1}}, Budget: 9, At: at}, lane.Open{Holder: "host-2", Token: 2, At: at},
	} {
		_, err := lanes.Do(t.Context(), lane.Stream(id), c, eventlog.Meta{Actor: "relayer"})
		check(t, err)
	}
	keys := handler.Handler[signer.State, signer.Command, signer.Event]{Store: store, Codec: signer.Codec(), Random: rand.Reader}
	for _, c := range []signer.Command{signer.Register{Pools: []string{"hot"}, Actor: "configuration", At: at}, signer.Pause{Actor: "ann", Reason: "audit", At: at}} {
		_, err := keys.Do(t.Context(), signer.Stream(7, a), c, eventlog.Meta{Actor: "ann"})
		check(t, err)
	}
	most := chain.NewAmount(100)
	budgets := handler.Handler[budget.State, budget.Command, budget.Event]{Store: store, Codec: budget.Codec(), Random: rand.Reader}
	_, err = budgets.Do(t.Context(), budget.Stream(7), budget.SetLimit{Account: budget.Account{Kind: budget.OnChain}, Limit: budget.Limit{Fee: &most}, Actor: "ann", Reason: "audit", At: at}, eventlog.Meta{Actor: "ann"})
	check(t, err)
	check(t, db.Close())

	log, err := embedded.Inspect(t.Context(), dir)
	check(t, err)
	defer log.Close() //nolint:errcheck // it was only read
	replay := func(text string, until auditor.Until) (why, state string) {
		t.Helper()
		name, err := auditor.Subject(t.Context(), log, text, []chain.ID{7}, nil, history.Kinds()...)
		check(t, err)
		m, err := auditor.Replay(t.Context(), log, auditor.Life{Stream: name, Kinds: history.Kinds()}, until)
		check(t, err)
		shown, err := json.Marshal(m.State)
		check(t, err)
		return m.Why, string(shown)
	}
	for _, c := range []struct {
		subject    string
		until      auditor.Until
		why, state string
	}{
		{string(lane.Stream(id)), auditor.Until{Version: 1}, "host-1 holds the lane, with token 1.", `"Holder":"host-1","Token":1,"InFlight":0`},
		{string(lane.Stream(id)), auditor.Until{Version: 3}, "1 intents got new nonces from 4 on", `"NextNonce":5,"InFlight":1`},
		{string(lane.Stream(id)), auditor.Until{}, "Before, host-1 held it, with token 1: its writes are refused", `"Holder":"host-2","Token":2`},
		{string(lane.Stream(id)), auditor.Until{Point: auditor.Point{Position: 2}}, "The chain expects nonce 4, by a.", `"NextNonce":4`},
		{"signer/" + a.String(), auditor.Until{Version: 1}, "it belongs to the pools hot", `"Status":"serving"`},
		{"signer/" + a.String(), auditor.Until{}, "ann paused it: it signs nothing, because: audit.", `"Status":"paused"`},
		{"budget", auditor.Until{}, "ann set the daily limits of", `"Limits":[{"Account"`},
	} {
		why, state := replay(c.subject, c.until)
		if !strings.Contains(why, c.why) || !strings.Contains(state, c.state) {
			t.Errorf("%s %+v: %q\n%s", c.subject, c.until, why, state)
		}
	}
	steps, err := auditor.Show(t.Context(), log, auditor.Life{Stream: lane.Stream(id), Kinds: history.Kinds()})
	check(t, err)
	if len(steps) != 4 || len(steps[3].Changed) == 0 || steps[3].Changed[0].Field != "Holder" {
		t.Errorf("%+v", steps)
	}
}
