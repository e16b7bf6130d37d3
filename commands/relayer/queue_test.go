package relayer

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// shelf is the work queue in memory, as plain as its contract allows.
type shelf struct {
	now func() time.Time

	mu   sync.Mutex
	rows map[chain.IntentID]*waiting
	at   event.Position
}

type waiting struct {
	intent.Waiting
	place *intent.Place // nil while it waits
	lane  chain.Sequence
	by    string // of a claim
	until time.Time
}

func (q *shelf) Checkpoint(context.Context, string) (event.Position, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.at, nil
}

func (q *shelf) MoveCheckpoint(context.Context, string, event.Position, event.Position) error {
	panic("the checkpoint moves with the rows")
}

func (q *shelf) Apply(_ context.Context, _ string, from, to event.Position, changes []intent.Change) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at != from {
		return event.ErrMoved
	}
	q.at = to
	for _, c := range changes {
		row := q.rows[c.ID]
		switch {
		case c.Open != nil && row == nil:
			q.rows[c.ID] = &waiting{Waiting: *c.Open}
		case row == nil:
		case c.Place != nil:
			row.place, row.by = c.Place, ""
			row.lane = chain.Sequence{Chain: row.Chain, Sender: c.Place.Signer, Key: c.Place.NonceKey}
		case c.Requeue:
			row.place, row.by = nil, ""
		case c.Close:
			delete(q.rows, c.ID)
		}
	}
	return nil
}

func (q *shelf) Claim(_ context.Context, c intent.Claim) (claimed []intent.Claimed, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	rows := make([]*waiting, 0, len(q.rows))
	for _, row := range q.rows {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *waiting) int { return int(a.Position) - int(b.Position) })
	before := map[intent.Row]bool{} // whether all earlier ones of a row are in this lane
	for _, row := range rows {
		mine := row.by == c.Holder && now.Before(row.until)
		free := row.place == nil && (row.by == "" || !now.Before(row.until))
		here, met := before[row.Row]
		fits := row.Chain == c.Lane.Chain && (row.Key == nil || *row.Key == c.Lane.Key) &&
			(row.From.Signer != nil && *row.From.Signer == c.Lane.Sender || slices.Contains(c.Pools, row.From.Pool))
		took := free && fits && len(claimed) < c.Limit && (row.Row.Order == "" || !met || here)
		if took {
			row.by, row.until, row.lane = c.Holder, now.Add(c.TTL), c.Lane
			claimed = append(claimed, intent.Claimed{Waiting: row.Waiting, Follows: row.Row.Order != "" && met})
		}
		if row.Row.Order != "" {
			held := took || mine || row.place != nil && row.lane == c.Lane
			before[row.Row] = held && (here || !met)
		}
	}
	return claimed, nil
}

func (q *shelf) Return(_ context.Context, holder string, ids []chain.IntentID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		if row := q.rows[id]; row != nil && row.by == holder {
			row.by = ""
		}
	}
	return nil
}

func (q *shelf) Demand(context.Context, chain.ID) ([]intent.Demand, error) { panic("nobody asks") }

// The shelf keeps the promises that tests here rest on.
func TestShelf(t *testing.T) {
	at := time.Unix(0, 0)
	q := &shelf{now: func() time.Time { return at }, rows: map[chain.IntentID]*waiting{}}
	lane := chain.Sequence{Chain: 1, Sender: chain.Address{1}}
	row := func(n byte, order string) intent.Change {
		w := intent.Waiting{ID: chain.IntentID{n}, Position: event.Position(n), Chain: 1, From: intent.From{Pool: "p"}}
		if order != "" {
			w.Row = intent.Row{Chain: 1, Order: order}
		}
		return intent.Change{ID: w.ID, Open: &w}
	}
	must(t, q.Apply(t.Context(), "", 0, 9, []intent.Change{row(1, "o"), row(2, ""), row(3, "o"), row(4, "o")}))
	claim := func(holder string, limit int) (ids []byte) {
		claimed, err := q.Claim(t.Context(), intent.Claim{Lane: lane, Pools: []string{"p"}, Holder: holder, TTL: time.Second, Limit: limit})
		must(t, err)
		for _, c := range claimed {
			ids = append(ids, c.ID[0])
			if c.Follows != (c.ID[0] > 2) {
				t.Errorf("%d follows: %t", c.ID[0], c.Follows)
			}
		}
		return ids
	}
	for i, step := range []struct {
		holder string
		limit  int
		want   []byte
	}{{"a", 1, []byte{1}}, {"b", 9, []byte{2}}, {"a", 1, []byte{3}}, {"b", 9, nil}} {
		if got := claim(step.holder, step.limit); !slices.Equal(got, step.want) {
			t.Errorf("claim %d: %v, want %v", i, got, step.want)
		}
	}
	at = at.Add(time.Second)
	if got := claim("b", 9); !slices.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("after the claims have lapsed: %v", got)
	}
}
