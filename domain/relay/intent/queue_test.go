package intent_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestLaneKey(t *testing.T) {
	fixed := chain.NonceKey{31: 5}
	of := func(mode intent.NonceMode, key *chain.NonceKey, client, order string) (chain.NonceKey, bool) {
		return intent.Request{Client: client, Order: order, NonceKey: intent.NoncePolicy{Mode: mode, Key: key}}.LaneKey()
	}
	if key, chosen := of(intent.NonceAny, nil, "a", "b"); chosen || !key.IsZero() {
		t.Errorf("any: %s, %t", key, chosen)
	}
	if key, chosen := of(intent.NonceProtocol, nil, "a", ""); !chosen || !key.IsZero() {
		t.Errorf("protocol: %s, %t", key, chosen)
	}
	if key, chosen := of(intent.NonceFixed, &fixed, "a", ""); !chosen || key != fixed {
		t.Errorf("fixed: %s, %t", key, chosen)
	}
	met := map[chain.NonceKey]string{}
	for _, row := range [][2]string{{"a", "b"}, {"a", "c"}, {"", "ab"}, {"ab", "c"}, {"", "b"}} {
		key, chosen := of(intent.NonceOrdered, nil, row[0], row[1])
		if _, explicit := key.Explicit(); !chosen || explicit || key.IsZero() || key.IsExpiring() || key[0] == 0x5b {
			t.Errorf("%q: %s, %t", row, key, chosen)
		}
		if other, twice := met[key]; twice {
			t.Errorf("%q and %q have one key", row, other)
		}
		met[key] = row[0] + "/" + row[1]
		if again, _ := of(intent.NonceOrdered, nil, row[0], row[1]); again != key {
			t.Errorf("%q: %s, and then %s", row, key, again)
		}
	}
}

func TestPlan(t *testing.T) {
	pool := intent.Request{
		Client: "c", Key: "k", From: intent.From{Pool: "hot"}, Chain: 7, Deadline: 99, Order: "o",
		NonceKey: intent.NoncePolicy{Mode: intent.NonceProtocol}, Gas: intent.Gas{MaxFee: intent.NewAmount(5)},
	}
	place := intent.Place{Signer: chain.Address{1}, NonceKey: chain.NonceKey{31: 2}, Nonce: 3}
	id := pool.ID()
	plain := intent.Request{Key: "k", From: intent.From{Signer: &place.Signer}, Chain: 7}
	for name, test := range map[string]struct {
		fact intent.Event
		want intent.Change
	}{
		"requested": {intent.Requested{ID: id, Request: pool}, intent.Change{ID: id, Open: &intent.Waiting{
			ID: id, Position: 5, Chain: 7, Client: "c", From: pool.From, Key: &chain.NonceKey{}, Row: intent.Row{Chain: 7, Client: "c", Order: "o"}, Deadline: 99,
			MaxFee: intent.NewAmount(5), Size: pool.Size(),
		}}},
		"requested for any lane": {intent.Requested{ID: id, Request: plain}, intent.Change{ID: id, Open: &intent.Waiting{
			ID: plain.ID(), Position: 5, Chain: 7, From: plain.From, Size: plain.Size(),
		}}},
		"assigned":  {intent.Assigned{Place: place}, intent.Change{ID: id, Place: &place}},
		"requeued":  {intent.Requeued{}, intent.Change{ID: id, Requeue: true}},
		"completed": {intent.Completed{}, intent.Change{ID: id, Close: true}},
		"failed":    {intent.Failed{}, intent.Change{ID: id, Close: true}},
		"canceled":  {intent.Canceled{}, intent.Change{ID: id, Close: true}},
	} {
		got, ok := intent.Plan(id, test.fact, eventlog.Position(5))
		if diff := cmp.Diff(test.want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got)\n%s", name, ok, diff)
		}
	}
	for _, fact := range []intent.Event{intent.Attempted{}, intent.CancelRequested{}, intent.SpeedUpRequested{}, intent.YieldRequested{}, intent.GiveWayRequested{}, intent.Announced{}, intent.Reorged{}} {
		if got, ok := intent.Plan(id, fact, 5); ok {
			t.Errorf("%T: %+v", fact, got)
		}
	}
}

// A request's size is close to the length of the event that holds it, and is never 0, which a row
// of the queue without a size has.
func TestSize(t *testing.T) {
	for name, r := range map[string]intent.Request{
		"nothing":         {},
		"much data":       {Calls: []intent.Call{{Data: make(intent.Data, intent.DataMax)}}},
		"many calls":      {Calls: slices.Repeat([]intent.Call{{Data: make(intent.Data, intent.DataMax/intent.CallsMax)}}, intent.CallsMax)},
		"much metadata":   {Metadata: map[string]string{"name": strings.Repeat("v", intent.MetadataMax)}},
		"a webhook's URL": {Webhooks: []intent.Webhook{{URL: strings.Repeat("u", notice.URLMax)}}},
	} {
		encoded, err := json.Marshal(intent.Requested{Request: r})
		if err != nil {
			t.Fatal(err)
		}
		if size := r.Size(); size <= 0 || size < len(encoded)*9/10 || size > len(encoded)+2048 {
			t.Errorf("%s: a size of %d, and %d bytes", name, size, len(encoded))
		}
	}
}

// No speed-up raises an intent's ceiling, so that the queue may keep it.
func TestSpeedUpsKeepTheCeiling(t *testing.T) {
	s := intent.State{}.Evolve(intent.Requested{ID: chain.IntentID{1}, Request: intent.Request{Gas: intent.Gas{MaxFee: intent.NewAmount(100)}}})
	if _, err := s.Decide(intent.SpeedUp{Fee: intent.NewAmount(101)}); !errors.Is(err, intent.ErrOverCeiling) {
		t.Errorf("above the ceiling: %v", err)
	}
	events, err := s.Decide(intent.SpeedUp{Fee: intent.NewAmount(100)})
	if err != nil || len(events) != 1 {
		t.Fatalf("%v, %v", events, err)
	}
	if got := s.Evolve(events[0]).Requested.Request.Gas.MaxFee; got != intent.NewAmount(100) {
		t.Errorf("the ceiling is %s", got)
	}
}
