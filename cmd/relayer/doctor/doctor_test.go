package doctor

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

var update = flag.Bool("update", false, "write the texts anew")

var (
	now   = time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	alice = chain.Address{0xa1}
	first = request("first").ID()
	other = request("other").ID()
	head  = chain.Block{Number: 7, Hash: chain.Keccak([]byte("7")), Time: 1_800_000_000}
)

func request(key string) intent.Request {
	return intent.Request{Key: key, Chain: 1, From: intent.From{Signer: &alice}, Calls: []intent.Call{{To: &alice}}}
}

func hashOf(n int) chain.Hash { return chain.Keccak([]byte{byte(n)}) }

func price(gwei uint64) chain.Price { return chain.PriceOf(gwei * 1_000_000_000) }

// attempted is the n-th attempt for an intent, at gwei gwei.
func attempted(nonce uint64, id chain.IntentID, n int, gwei uint64) lane.Event {
	return lane.Attempted{Nonce: nonce, Intent: id, Hash: hashOf(n), Fee: chain.Fee{MaxFee: price(gwei), MaxPriorityFee: price(1)}, At: now.Add(-10 * time.Second)}
}

func placed(key string, nonce uint64, change func(*intent.Request)) intent.State {
	r := request(key)
	change(&r)
	return intent.State{}.Evolve(intent.Requested{ID: r.ID(), Request: r}).Evolve(intent.Assigned{Assignment: 1, Place: intent.Place{Signer: alice, Nonce: nonce}})
}

// facts are the facts of a healthy lane at cursor 5, plus more events.
func facts(more ...lane.Event) Facts {
	f := Facts{
		ID: chain.Sequence{Chain: 1, Sender: alice}, Now: now, Opened: now.Add(-time.Hour), Lease: Lease{Where: "the database", Holder: "process 1", Until: now.Add(time.Second), Runs: true},
		Market:  chain.Market{Next: new(chain.Price), Suggested: price(1)},
		Balance: new(chain.Amount), Txs: map[chain.Hash]Tx{}, Intents: map[chain.IntentID]intent.State{},
		Rules: Rules{Policy: fee.Default(), NoOpGas: 100_000, Budget: 3, Stall: 30 * time.Second, Look: time.Minute, Claim: 10 * time.Second},
	}
	*f.Market.Next, *f.Balance = price(10), chain.NewAmount(1_000_000)
	f.BaseFee = f.Market.Next
	f.Lane = f.Lane.Evolve(lane.Opened{Holder: "process 1", Token: 1}).Evolve(lane.Advanced{Token: 1, Witness: lane.Witness{Nonce: 5}})
	for _, e := range more {
		f.Lane = f.Lane.Evolve(e)
	}
	f.Signer = f.Signer.Evolve(signer.Registered{At: now})
	f.Witness = lane.Witness{Nonce: 5, Block: head, Endpoints: []string{"a", "b"}, Needed: 2, Asked: 3}
	return f
}

func reserved(ids ...chain.IntentID) lane.Event {
	return lane.Reserved{Token: 1, First: 5, Intents: ids, At: now.Add(-time.Minute)}
}

func with(f Facts, change func(*Facts)) Facts {
	change(&f)
	return f
}

func yes(b bool) *bool { return &b }

// limited sets a daily limit on the chain's fees.
func limited(most uint64) func(*Facts) {
	return func(f *Facts) {
		limit := chain.NewAmount(most)
		f.Budget = f.Budget.Evolve(budget.LimitSet{Account: budget.Account{Kind: budget.OnChain}, Limit: budget.Limit{Fee: &limit}})
	}
}

// cases are lanes, each with the fault in its name.
func cases() map[string]Facts {
	sent := func() Facts {
		f := facts(reserved(first), attempted(5, first, 1, 20))
		f.Intents[first] = placed("first", 5, func(*intent.Request) {}).Evolve(intent.Attempted{Assignment: 1, Attempt: 1, Hash: hashOf(1)})
		f.Txs[hashOf(1)] = Tx{State: tx.State{Status: tx.StatusBroadcasting}, Known: yes(true), NextAt: now.Add(time.Minute)}
		return f
	}
	hole := func(change func(*intent.Request)) Facts {
		f := facts(reserved(first, other), attempted(6, other, 1, 20))
		f.Intents[first] = placed("first", 5, change)
		f.Intents[other] = placed("other", 6, change).Evolve(intent.Attempted{Assignment: 1, Attempt: 1, Hash: hashOf(1)})
		f.Txs[hashOf(1)] = Tx{State: tx.State{Status: tx.StatusBroadcasting}}
		return f
	}
	poor := func(r *intent.Request) { r.Gas.MaxFee = chain.NewAmount(9_000_000_000) }
	tx1 := func(change func(*Tx)) Facts {
		f := sent()
		t := f.Txs[hashOf(1)]
		change(&t)
		f.Txs[hashOf(1)] = t
		return f
	}
	return map[string]Facts{
		"well":       facts(),
		"well, busy": sent(),
		"never-opened": with(facts(), func(f *Facts) {
			f.Lane, f.Opened, f.Lease = lane.State{}, time.Time{}, Lease{}
		}),
		"not-held":             with(facts(), func(f *Facts) { f.Lease.Runs = false }),
		"lease-unknown":        with(facts(), func(f *Facts) { f.Lease = Lease{Where: "Redis", Unknown: "no answer"} }),
		"chain-unknown":        with(facts(), func(f *Facts) { f.NodeErr, f.MarketErr = errors.New("no\x1b[2J answer"), errors.New("none") }),
		"external-use":         with(facts(), func(f *Facts) { f.Witness.Nonce = 8 }),
		"chain-went-back":      with(facts(reserved(first), lane.Landed{Nonce: 5, Final: true}), func(f *Facts) { f.Witness.Nonce = 5 }),
		"jumped-over":          with(facts(lane.Advanced{Token: 1, From: 5, Witness: lane.Witness{Nonce: 9}}), func(f *Facts) { f.Witness.Nonce = 6 }),
		"external-use-of-open": with(tx1(func(t *Tx) { t.Status, t.Verdict = tx.StatusStale, tx.StatusStale }), func(f *Facts) { f.Witness.Nonce = 6 }),
		"dropped":              tx1(func(t *Tx) { t.Known = yes(false) }),
		"lacks-funds":          tx1(func(t *Tx) { t.Last = &tx.Rejected{Cause: tx.Funds} }),
		"refused-by-nodes":     tx1(func(t *Tx) { t.Last = &tx.Rejected{Class: tx.Retry, Reason: "pool is full"} }),
		"contradicted":         tx1(func(t *Tx) { t.Violated = true }),
		"underpriced":          with(sent(), func(f *Facts) { *f.BaseFee = price(30) }),
		"underpriced, at the ceiling": with(sent(), func(f *Facts) {
			*f.BaseFee, f.Rules.Policy.Ceiling = price(30), price(21)
		}),
		"unsent": with(sent(), func(f *Facts) {
			f.Now, f.Rules.Policy.Ceiling = now.Add(time.Hour), price(15)
			delete(f.Txs, hashOf(1))
			f.Intents[first] = f.Intents[first].Evolve(intent.CancelRequested{Reason: intent.Withdrawn})
		}),
		"unsent, above the ceiling": with(sent(), func(f *Facts) {
			f.Now, f.Rules.Policy.Ceiling = now.Add(time.Hour), price(10)
			delete(f.Txs, hashOf(1))
		}),
		"stalled, at the ceiling": with(sent(), func(f *Facts) { f.Now, f.Rules.Policy.Ceiling = now.Add(time.Hour), price(22) }),
		"stalled":                 with(sent(), func(f *Facts) { f.Now = now.Add(time.Hour) }),
		"hole-held":               hole(poor),
		"hole-held, a row":        hole(func(r *intent.Request) { poor(r); r.Order = "row" }),
		"hole-free": with(facts(reserved(first, other), lane.Released{Nonce: 5, Intent: first}, attempted(6, other, 1, 20)), func(f *Facts) {
			f.Txs[hashOf(1)] = Tx{State: tx.State{Status: tx.StatusBroadcasting}}
		}),
		"full":          facts(reserved(first, other, intent.ID("", intent.From{Pool: "x"}, "third"))),
		"signer-paused": with(facts(), func(f *Facts) { f.Signer = f.Signer.Evolve(signer.Paused{Actor: "ann", Reason: "to look", At: now}) }),
		"halted": with(facts(), func(f *Facts) {
			f.Switches = f.Switches.Evolve(safeguard.Halted{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: "ann", Reason: "fire", At: now})
		}),
		"budget-spent":         with(facts(), limited(0)),
		"budget-spent, nearly": with(facts(), limited(1)),
		"waits": with(facts(), func(f *Facts) {
			limited(1 << 60)(f)
			f.Waits = []Wait{
				{ID: first, Since: now.Add(-time.Hour), Why: budget.ErrSpent.Because("it takes 7 in fees")},
				{ID: request("fits").ID(), Since: now.Add(-time.Minute)},
				{ID: other, Since: now.Add(-2 * time.Hour), Why: fmt.Errorf("%w", budget.ErrSpent.Because("it takes 8 in fees"))},
			}
		}),
		"waits, for the node": with(facts(), func(f *Facts) {
			f.Waits = []Wait{{ID: first, Since: now.Add(-time.Hour), Why: errors.New("eth_estimateGas: insufficient\x1b[2J funds")}}
		}),
		"waits, for the market": with(facts(), func(f *Facts) {
			f.Waits = []Wait{{ID: first, Since: now.Add(-time.Hour), Why: fee.ErrMarket}}
		}),
	}
}

// The diagnosis of each lane has exactly the finding in its name, with the words in the golden
// file.
func TestDiagnoses(t *testing.T) {
	for name, f := range cases() {
		t.Run(name, func(t *testing.T) {
			d := Diagnose(f)
			var codes []string
			for _, found := range d.Findings {
				codes = append(codes, found.Code)
			}
			code, _, _ := strings.Cut(name, ",")
			if well := code == "well"; d.Well != well || !well && !slices.Equal(codes, []string{code}) {
				t.Errorf("it has %q", codes)
			}
			var text strings.Builder
			check(t, Tell(&text, d))
			check(t, TellFillings(&text, d))
			path := filepath.Join("testdata", strings.NewReplacer(", ", "-", " ", "-").Replace(name)+".txt")
			if *update {
				check(t, os.WriteFile(path, []byte(text.String()), 0o600))
			}
			want, err := os.ReadFile(path)
			check(t, err)
			if diff := cmp.Diff(string(want), text.String()); diff != "" {
				t.Errorf("%s is not what is said (-file +said); go test -update writes it:\n%s", path, diff)
			}
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		})
	}
}

// The operators' page names every finding.
func TestPageNamesEveryFinding(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/relayer.md")
	check(t, err)
	var source []byte
	for _, name := range []string{"findings.go", "waits.go"} {
		text, err := os.ReadFile(name)
		check(t, err)
		source = append(source, text...)
	}
	codes := map[string]bool{}
	for name := range cases() {
		code, _, _ := strings.Cut(name, ",")
		codes[code] = code != "well"
	}
	for _, status := range []signer.Status{signer.StatusPaused, signer.StatusDrained, signer.StatusDraining, signer.StatusDisabled, signer.StatusLow} {
		codes["signer-"+string(status)] = true
	}
	for code, is := range codes {
		if is && !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("%s is not on the page", code)
		}
		if is && !strings.HasPrefix(code, "signer-") && !strings.Contains(string(source), `"`+code+`"`) {
			t.Errorf("%s is found no more", code)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
