package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// intentModel applies random changes and claims to a queue and to a simple model of it: a list
// that is scanned, with the rule as specified.
func intentModel(t *testing.T, q *intentQueue) {
	id := chain.ID(1) // each run uses its own chain
	rapid.Check(t, func(r *rapid.T) {
		id++
		m := &modelIntents{chain: id}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			m.step(r, q)
		}
		for _, row := range m.rows {
			ahead, err := q.Ahead(soon(t), row.Row, row.Position)
			check(t, err)
			if want := m.ahead(row); ahead != want {
				r.Fatalf("ahead of %d in %s is %s, not %s", row.Position, row.Row.Name(), ahead, want)
			}
		}
		demand, err := q.Demand(soon(t), id)
		check(t, err)
		if diff := cmp.Diff(m.demand(), demand, cmpopts.EquateEmpty()); diff != "" {
			r.Fatalf("demand: %s", diff)
		}
	})
}

type modelIntents struct {
	chain chain.ID
	rows  []*modelIntent // by position
}

type modelIntent struct {
	intent.Waiting
	lane   *chain.Sequence // the lane in which it has a nonce, or that has claimed it
	holder string          // of the claim
}

const modelIntentsMax = 9

func (m *modelIntents) step(r *rapid.T, q *intentQueue) {
	switch rapid.IntRange(0, 3).Draw(r, "what") {
	case 0:
		var changes []intent.Change
		for range rapid.IntRange(1, 6).Draw(r, "changes") {
			changes = append(changes, m.change(r))
		}
		q.apply(changes...)
	case 1:
		holder := m.lane(r).Holder
		ids := []chain.IntentID{m.id(rapid.IntRange(1, modelIntentsMax).Draw(r, "returned"))}
		check(q.t, q.Return(soon(q.t), holder, ids))
		for _, row := range m.rows {
			if row.ID == ids[0] && row.holder == holder {
				row.lane, row.holder = nil, ""
			}
		}
	default:
		c := m.lane(r)
		want := m.claim(c)
		got, err := q.Claim(soon(q.t), c)
		check(q.t, err)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			r.Fatalf("%s claims: %s", c.Holder, diff)
		}
	}
}

func (m *modelIntents) id(n int) chain.IntentID { return intentID(int(m.chain)*1000 + n) }

// lane returns a random lane's claim.
func (m *modelIntents) lane(r *rapid.T) intent.Claim {
	c := laneClaim(rapid.IntRange(0, 1).Draw(r, "signer"), byte(rapid.IntRange(0, 1).Draw(r, "key")), rapid.IntRange(1, 4).Draw(r, "limit"))
	c.Lane.Chain = m.chain
	if rapid.Bool().Draw(r, "in no pool") {
		c.Pools = nil
	}
	c.OnlyAsked = rapid.Bool().Draw(r, "only asked")
	c.Turn = rapid.SampledFrom(modelClients()).Draw(r, "turn")
	c.Holder += fmt.Sprint(" run ", rapid.IntRange(0, 1).Draw(r, "run"))
	if n := rapid.IntRange(-modelIntentsMax, modelIntentsMax).Draw(r, "after"); n > 0 {
		c.After = eventlog.Position(int(m.chain)*1000 + n)
	}
	return c
}

// change makes one random change, and applies it to the model.
func (m *modelIntents) change(r *rapid.T) intent.Change {
	n := rapid.IntRange(1, modelIntentsMax).Draw(r, "intent")
	at := slices.IndexFunc(m.rows, func(row *modelIntent) bool { return row.ID == m.id(n) })
	switch c := (intent.Change{ID: m.id(n)}); rapid.IntRange(0, 5).Draw(r, "change") {
	case 0:
		if c.Close = true; at >= 0 {
			m.rows = slices.Delete(m.rows, at, at+1)
		}
		return c
	case 1:
		if c.Requeue = true; at >= 0 && m.rows[at].holder == "" {
			m.rows[at].lane = nil
		}
		return c
	case 2:
		s := chain.Sequence{Chain: m.chain, Sender: signers[rapid.IntRange(0, 1).Draw(r, "place")], Key: chain.NonceKey{31: byte(rapid.IntRange(0, 1).Draw(r, "under"))}}
		if c.Place = (&intent.Place{Signer: s.Sender, NonceKey: s.Key}); at >= 0 {
			m.rows[at].lane, m.rows[at].holder = &s, ""
		}
		return c
	default:
		w := m.draw(r, n)
		if c.Open = &w; at < 0 {
			m.rows = append(m.rows, &modelIntent{Waiting: w})
			slices.SortFunc(m.rows, func(a, b *modelIntent) int { return int(a.Position) - int(b.Position) })
		}
		return c
	}
}

func (m *modelIntents) draw(r *rapid.T, n int) intent.Waiting {
	w := intent.Waiting{ID: m.id(n), Position: eventlog.Position(int(m.chain)*1000 + n), Chain: m.chain}
	if s := rapid.IntRange(0, 4).Draw(r, "by"); s < 2 {
		bySigner(s)(&w)
	} else {
		w.From.Pool = intentPool
	}
	if key := rapid.IntRange(0, 3).Draw(r, "wants key"); key < 2 {
		underKey(byte(key))(&w)
	}
	w.Client = rapid.SampledFrom(modelClients()).Draw(r, "client")
	w.MaxFee, w.Size = intent.NewAmount(rapid.Uint64().Draw(r, "max fee")), rapid.IntRange(0, 1<<20).Draw(r, "size")
	w.NotBefore = rapid.SampledFrom([]uint64{0, 0, 1, farOff}).Draw(r, "not before")
	if row := rapid.IntRange(0, 2).Draw(r, "row"); row > 0 {
		inRow(w.Client, fmt.Sprint(row))(&w)
	}
	return w
}

// farOff is a time that no test reaches, in Unix seconds. An intent that waits for it sleeps.
const farOff = 10_000_000_000

func modelClients() []string { return []string{"", "a", "b", "c"} }

// claim implements the rule: the next client in turn with a claimable intent gets its first
// claimable intent, repeatedly.
func (m *modelIntents) claim(c intent.Claim) (claimed []intent.Claimed) {
	clients, turn := modelClients(), slices.Index(modelClients(), c.Turn)
	for vain := 0; vain < len(clients) && len(claimed) < c.Limit; {
		turn = (turn + 1) % len(clients)
		at := slices.IndexFunc(m.rows, func(row *modelIntent) bool {
			_, may := m.may(c, row)
			return may && row.Client == clients[turn]
		})
		if vain++; at < 0 {
			continue
		}
		vain = 0
		row := m.rows[at]
		behind, _ := m.may(c, row)
		row.lane, row.holder = &c.Lane, c.Holder
		claimed = append(claimed, intent.Claimed{Waiting: row.Waiting, Behind: behind})
	}
	return claimed
}

// may reports whether an intent may be claimed, and the intent just before it in its ordering
// group.
func (m *modelIntents) may(c intent.Claim, row *modelIntent) (behind chain.IntentID, may bool) {
	may = row.lane == nil && row.NotBefore != farOff && row.Position > c.After && (row.Key == nil && !c.OnlyAsked || row.Key != nil && *row.Key == c.Lane.Key) &&
		(row.From.Pool != "" && slices.Contains(c.Pools, row.From.Pool) || row.From.Signer != nil && *row.From.Signer == c.Lane.Sender)
	for _, o := range m.rows {
		if o == row || row.Row.Order == "" || o.Row != row.Row {
			continue
		}
		before := o.Position < row.Position
		mine := o.lane != nil && *o.lane == c.Lane && (o.holder == "" || o.holder == c.Holder)
		if before {
			behind = o.ID
		}
		may = may && (mine || o.lane == nil && !before)
	}
	return behind, may
}

// ahead returns the last intent without a nonce before another in its ordering group.
func (m *modelIntents) ahead(row *modelIntent) (id chain.IntentID) {
	for _, o := range m.rows {
		if row.Row.Order != "" && o.Row == row.Row && o.Position < row.Position && (o.lane == nil || o.holder != "") {
			id = o.ID
		}
	}
	return id
}

func (m *modelIntents) demand() []intent.Demand {
	var all []intent.Demand
	for _, row := range m.rows {
		if row.lane != nil && row.holder == "" {
			all = append(all, intent.Demand{From: intent.From{Signer: &row.lane.Sender}, Key: &row.lane.Key, Client: row.Client, First: row.Position, Assigned: 1})
			continue
		}
		if row.NotBefore == farOff {
			continue
		}
		all = append(all, intent.Demand{From: row.From, Key: row.Key, Client: row.Client, First: row.Position, Waiting: 1})
	}
	return intent.Sum(all)
}
