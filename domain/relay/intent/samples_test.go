package intent

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events and notices that have none yet")

// whole returns a request with every field set. No client can send it: it names a signer and a
// pool.
func whole() Request {
	to, token, key := chain.Address{2}, chain.Address{3}, chain.NonceKey{31: 5}
	amount, _ := ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935")
	return Request{
		Client: "payroll", Key: "salary-2026-11", From: From{Signer: &chain.Address{1}, Pool: "hot"}, Chain: 42431,
		Calls: []Call{{To: &to, Value: amount, Data: Data{0xca, 0xfe}}, {To: &to, Data: Data{1}}},
		Gas: Gas{
			Limit: 90_000, Urgency: Fast, MaxFee: NewAmount(20_000_000_000), MaxPriorityFee: NewAmount(1), FeeToken: &token, Sponsored: true,
		},
		Deadline: 1_800_003_600, Order: "alice", NonceKey: NoncePolicy{NonceFixed, &key}, Subject: "Alice & Söhne",
		Webhooks: []Webhook{{URL: "https://hooks.example.com/watch?a=1&b=2"}, {URL: "https://other.example.com/"}},
		Metadata: map[string]string{"invoice": "4711", "branch": "Zürich"}, Simulate: true,
	}
}

// samples returns one event of every current shape, with every field set.
func samples() []Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	hash, other := chain.Keccak([]byte("transaction")), chain.Keccak([]byte("another"))
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block 7")), Parent: chain.Keccak([]byte("block 6")), Time: 1_800_000_000}
	rival := chain.Block{Number: 7, Hash: chain.Keccak([]byte("rival 7")), Parent: block.Parent, Time: 1_800_000_001}
	next := chain.Block{Number: 8, Hash: chain.Keccak([]byte("block 8")), Parent: block.Hash, Time: 1_800_000_001}
	receipt := chain.Receipt{Block: block, Index: 3, Status: 1, GasUsed: 50_000, EffectiveGasPrice: "20000000000", FeePayer: &chain.Address{4}, FeeToken: &chain.Address{3}}
	request, fee := whole(), chain.Fee{MaxFee: chain.PriceOf(30_000_000_000), MaxPriorityFee: chain.PriceOf(1_000_000)}
	origin := Origin{eventlog.ID{1, 15: 2}, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	return []Event{
		Requested{ID: request.ID(), Digest: request.Digest(), Request: request, Origin: origin, At: at},
		Assigned{Sequence: 1, Assignment: 2, Place: Place{chain.Address{1}, chain.NonceKey{31: 5}, 9}, Token: 3, At: at},
		TakenOver{Assignment: 2, Token: 4, At: at},
		Requeued{Sequence: 4, Assignment: 2, Evidence: Evidence{Rival, block, other}, Was: hash, At: at},
		Attempted{Sequence: 2, Assignment: 2, Attempt: 3, Kind: Bump, Hash: hash, Replaces: other, Fee: fee, At: at},
		CancelRequested{Reason: Withdrawn, Detail: "wrong amount", At: at},
		SpeedUpRequested{Fee: NewAmount(30_000_000_000), At: at},
		YieldRequested{Assignment: 2, Detail: "it blocks the lane", At: at},
		GiveWayRequested{Assignment: 2, Detail: "it may not pay what gas costs", At: at},
		Announced{Sequence: 5, Kind: AboutConfirmations, Hash: hash, Receipt: &receipt, Confirmations: []chain.Block{block, next}, NewFork: true, At: at},
		Reorged{Was: block, Now: rival, At: at},
		Completed{Sequence: 6, Hash: hash, Block: block, Despite: Withdrawn, At: at},
		Failed{Sequence: 6, Reason: Reverted, Detail: "out of funds", Hash: hash, Block: block, At: at},
		Canceled{Sequence: 6, Detail: "wrong amount", Hash: other, Block: block, At: at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }

// Attempts recorded before fees were recorded still decode, with fee zero.
func TestAttemptedWithoutFee(t *testing.T) {
	e, err := Codec().Decode("intent.attempted.v1", []byte(`{"sequence":2,"assignment":2,"attempt":1,"kind":"first","hash":"0xbb2a99297e1d12a9b91d4f90d5dd4b160d93c84a9e3b4daa916fec14ec852e05","at":"2026-11-21T03:04:05.678901Z"}`))
	if err != nil || e.(Attempted).Fee != (chain.Fee{}) {
		t.Fatalf("%+v, %v", e, err)
	}
	_, again, err := Codec().Encode(e)
	if err != nil || bytes.Contains(again, []byte("fee")) {
		t.Errorf("%s, %v", again, err)
	}
}

// notices returns the events that are reported, in every form of notice.
func notices() map[string]Event {
	named := map[string]Event{}
	for _, e := range samples() {
		switch e := e.(type) {
		case Assigned:
			named["accepted"] = e
		case Requeued:
			named["replaced-by-rival"] = e
			e.Evidence = Evidence{Kind: Lapsed, Block: e.Evidence.Block}
			named["replaced-by-time"] = e
		case Attempted:
			named["replaced-by-fee"] = e
			e.Kind = NoOp
			named["replaced-by-cancel"] = e
			e.Kind, e.Replaces = First, chain.Hash{}
			named["submitted"] = e
		case Announced:
			receipt := e.Receipt
			e.Receipt = nil
			named["confirmed"] = e
			e.Confirmations = nil
			named["confirmed-by-none"] = e
			e.Kind, e.NewFork, e.Receipt = AboutReceipt, false, receipt
			named["receipt"] = e
			e.Receipt = nil
			named["receipt-gone"] = e
		case Completed:
			named["done"] = e
		case Failed:
			named["failed"] = e
		case Canceled:
			named["failed-canceled"] = e
		}
	}
	return named
}

// Notices are frozen like events, because clients' programs read them.
func TestFrozenNotices(t *testing.T) {
	id := whole().ID()
	for name, e := range notices() {
		n, told := Tell(id, e)
		if !told || n.Sequence != SequenceOf(e) || n.At.IsZero() {
			t.Errorf("%s: %+v, %v", name, n, told)
			continue
		}
		data, err := json.MarshalIndent(n, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "notices", name+".json")
		frozen, err := os.ReadFile(path)
		if os.IsNotExist(err) && *update {
			frozen, err = append(data, '\n'), os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // a sample is for everybody
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(frozen), string(append(data, '\n'))); d != "" {
			t.Errorf("%s is told in another shape than the frozen one (-frozen +told):\n%s", name, d)
		}
		var back Notice
		if err := json.Unmarshal(frozen, &back); err != nil || !cmp.Equal(n, back) {
			t.Errorf("%s comes back as %+v: %v", name, back, err)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "notices", "*.json"))
	if err != nil || len(files) != len(notices()) {
		t.Errorf("%d samples for %d notices: %v", len(files), len(notices()), err)
	}
}

// Other events are not reported.
func TestUntold(t *testing.T) {
	silent := Requeued{Assignment: 1, Evidence: Evidence{Kind: Released}}
	for _, e := range []Event{samples()[0], CancelRequested{}, SpeedUpRequested{}, YieldRequested{}, GiveWayRequested{}, Reorged{}, TakenOver{}, silent} {
		if n, told := Tell(chain.IntentID{1}, e); told {
			t.Errorf("%T is told: %+v", e, n)
		}
	}
}

func TestUnreadableNotices(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "notices", "accepted.json"))
	if err != nil {
		t.Fatal(err)
	}
	var n Notice
	for _, bad := range [][]byte{
		[]byte("{}"), []byte("[]"), bytes.ReplaceAll(good, []byte("TxAccepted"), []byte("TxForgotten")),
		bytes.ReplaceAll(good, []byte(`"nonce"`), []byte(`"wish"`)),
	} {
		if err := json.Unmarshal(bad, &n); err == nil {
			t.Errorf("%s is read as %+v", bad, n)
		}
	}
}
