package intent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// life returns the events of an intent that is bumped, mined, reorged, and completed.
func life() []Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	first, second := chain.Keccak([]byte("transaction")), chain.Keccak([]byte("another"))
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block 7")), Parent: chain.Keccak([]byte("block 6")), Time: 1_800_000_000}
	next := chain.Block{Number: 8, Hash: chain.Keccak([]byte("block 8")), Parent: block.Hash, Time: 1_800_000_001}
	receipt := chain.Receipt{Block: block, Index: 3, Status: 1, GasUsed: 50_000, EffectiveGasPrice: "20000000000", FeePayer: &chain.Address{4}, FeeToken: &chain.Address{3}}
	fee := chain.Fee{MaxFee: chain.PriceOf(30_000_000_000), MaxPriorityFee: chain.PriceOf(1_000_000)}
	request := whole()
	request.NotBefore = 1_800_000_000
	return []Event{
		Requested{ID: request.ID(), Digest: request.Digest(), Request: request, At: at},
		Assigned{Sequence: 1, Assignment: 1, Place: Place{chain.Address{1}, chain.NonceKey{31: 5}, 9}, Token: 3, At: at},
		Attempted{Sequence: 2, Assignment: 1, Attempt: 1, Kind: First, Hash: first, At: at},
		SpeedUpRequested{Fee: NewAmount(30_000_000_000), At: at},
		Attempted{Sequence: 3, Assignment: 1, Attempt: 2, Kind: Bump, Hash: second, Replaces: first, Fee: fee, At: at},
		Announced{Sequence: 4, Kind: AboutReceipt, Hash: second, Receipt: &receipt, At: at},
		Announced{Sequence: 5, Kind: AboutConfirmations, Hash: second, Confirmations: []chain.Block{block, next}, At: at},
		Completed{Sequence: 6, Hash: second, Block: block, At: at},
	}
}

func tellAll(events []Event, most int, v Viewer) (all []Message) {
	var s Story
	id := events[0].(Requested).ID
	for _, e := range events {
		s = s.After(id, e, most)
		if m, public := s.Message(v); public {
			all = append(all, m)
		}
	}
	return all
}

// A message's form is frozen: receivers depend on it. It survives being read and written.
func TestFrozenMessages(t *testing.T) {
	for i, m := range tellAll(life(), 100, Owner) {
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "messages", strings.ToLower(m.Type())+"-"+string(rune('1'+i))+".json")
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		frozen, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.TrimSpace(string(frozen)), string(text)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
		var again Message
		if err := json.Unmarshal(frozen, &again); err != nil {
			t.Fatal(err)
		}
		if back, err := json.MarshalIndent(again, "", "  "); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s becomes %s, %v", path, back, err)
		}
		placed, err := json.Marshal(Placed{Position: eventlog.Position(17), Message: m})
		compact := new(bytes.Buffer)
		if err := json.Compact(compact, text); err != nil {
			t.Fatal(err)
		}
		if err != nil || string(placed) != `{"position":17,`+compact.String()[1:] {
			t.Errorf("with its position: %s, %v", placed, err)
		}
	}
}

// The last message alone settles an order: it has the key, the calls, the hash and the receipt.
func TestLastMessageSettlesAnOrder(t *testing.T) {
	all := tellAll(life(), 100, Owner)
	m := all[len(all)-1]
	r := whole()
	want := Summary{
		Client: r.Client, Key: r.Key, Chain: r.Chain, Signer: r.Signer, Pool: r.Pool, Order: r.Order, NotBefore: 1_800_000_000, Deadline: r.Deadline,
		Subject: r.Subject, Metadata: r.Metadata,
		Calls: []CallSummary{{To: r.Calls[0].To, Value: r.Calls[0].Value, Data: r.Calls[0].Data, DataBytes: 2}, {To: r.Calls[1].To, Data: r.Calls[1].Data, DataBytes: 1}},
	}
	if d := cmp.Diff(want, m.Request); d != "" {
		t.Error(d)
	}
	s := m.State
	if s.Status != StatusCompleted || s.Receipt == nil || s.Receipt.Status != 1 || s.Hash != chain.Keccak([]byte("another")) || s.Kind != Bump || s.Confirmations != 2 || *s.Nonce != 9 || s.Fee == nil {
		t.Errorf("%+v", s)
	}
}

// Others get no input of a call, and no hash of one, until a block contains the calls. A no-op in a
// block does not count.
func TestOthersSeeNoInputBeforeItIsMined(t *testing.T) {
	for _, most := range []int{100, 0} {
		owner, others := tellAll(life(), most, Owner), tellAll(life(), most, Others)
		for i, m := range others {
			mined := i >= 3
			for n, c := range m.Request.Calls {
				if shown := c.Data != nil || c.DataHash != nil; shown != mined || c.DataBytes != whole().dataBytes(n) {
					t.Errorf("%s, call %d: %+v", m.Type(), n, c)
				}
			}
			if d := cmp.Diff(m, owner[i].ForOthers()); d != "" {
				t.Errorf("made and cut messages differ: %s", d)
			}
			if a := owner[i].Request.Calls[0]; (a.Data != nil) != (most > 0) || (a.DataHash != nil) != (most == 0) {
				t.Errorf("the owner gets %+v", a)
			}
		}
	}
	events := life()[:3]
	at := time.Unix(0, 0)
	noop := chain.Keccak([]byte("no-op"))
	events = append(events, CancelRequested{Reason: Withdrawn, At: at},
		Attempted{Sequence: 3, Assignment: 1, Attempt: 2, Kind: NoOp, Hash: noop, At: at},
		Announced{Sequence: 4, Kind: AboutReceipt, Hash: noop, Receipt: &chain.Receipt{Status: 1}, At: at},
		Canceled{Sequence: 5, Hash: noop, At: at})
	for i, m := range tellAll(events, 100, Others) {
		if m.Request.Calls[0].Data != nil {
			t.Errorf("%s shows an input that no node may have seen", m.Type())
		}
		if d := cmp.Diff(m, tellAll(events, 100, Owner)[i].ForOthers()); d != "" {
			t.Error(d)
		}
	}
	last := tellAll(events, 100, Owner)[4]
	if s := last.State; s.Status != StatusCanceled || s.Kind != NoOp || s.Reason != Withdrawn {
		t.Errorf("a canceled intent's end says %+v", s)
	}
}

func (r Request) dataBytes(n int) int { return len(r.Calls[n].Data) }

// A story's earlier states do not change when later events are applied.
func TestStoriesDoNotShareChanges(t *testing.T) {
	var stories []Story
	var s Story
	events := life()
	for _, e := range events {
		s = s.After(events[0].(Requested).ID, e, 100)
		stories = append(stories, s)
	}
	again := stories[2].After(events[0].(Requested).ID, Attempted{Sequence: 3, Assignment: 1, Attempt: 2, Kind: NoOp, Hash: chain.Hash{9}}, 100)
	one, _ := stories[4].Message(Owner)
	other, _ := again.Message(Owner)
	if one.State.Kind != Bump || other.State.Kind != NoOp {
		t.Errorf("%+v, %+v", one.State, other.State)
	}
}

// Messages without a request are refused by nobody who reads older bodies.
func TestOlderBodies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "notices", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m Message
		if err := json.Unmarshal(text, &m); err != nil || m.Request.Key != "" || m.Sequence == 0 {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
	}
}
