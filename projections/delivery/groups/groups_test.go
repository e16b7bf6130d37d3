package groups_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
)

// Rows folded while the log grew, event by event or in batches, equal rows folded from the
// whole log at once, on every engine.
func TestRebuildEqualsLive(t *testing.T) {
	h := newHistory(t)
	const lives = 84
	dumps := map[string]string{}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		live, rebuilt := view(t), view(t)
		if len(dumps) == 0 { // the log grows under the first engine only
			for n := range lives {
				h.live(t, n)
				if n%5 == 0 {
					h.project(t, live)
				}
			}
		}
		h.project(t, live)
		h.project(t, rebuilt)
		dumps[t.Name()] = dump(t, live)
		if d := cmp.Diff(dumps[t.Name()], dump(t, rebuilt)); d != "" {
			t.Errorf("rebuilt rows differ (-live +rebuilt):\n%s", d)
		}
	})
	for _, d := range dumps {
		for _, e := range dumps {
			if d != e {
				t.Fatalf("the engines' rows differ: %s", cmp.Diff(d, e))
			}
		}
	}
}

// The listed groups equal a naive evaluation of all transactions.
func TestQueries(t *testing.T) {
	h := newHistory(t)
	const lives = 84
	for n := range lives {
		h.live(t, n)
	}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := view(t)
		h.project(t, db)
		q := groups.Query{DB: db}
		all, err := q.List(t.Context(), sender, groups.Filters{}, 0, 100)
		check(t, err)
		if len(all) != 6 {
			t.Fatalf("%d groups", len(all))
		}
		var claims []chain.Hash
		for _, g := range all {
			var hashes []chain.Hash
			var nonces []uint64
			var start, end, next uint64
			for n := range lives {
				a := accepted(n)
				if groupOf(n) != g.ID {
					continue
				}
				r, err := h.transactions.Load(t.Context(), tx.Stream(a.Chain, a.Hash))
				check(t, err)
				if r.State.GroupPending() && !r.State.Canceled {
					claims = append(claims, a.Hash)
				}
				if r.State.Group() == nil || r.State.Retired {
					continue
				}
				hashes, nonces = append(hashes, a.Hash), append(nonces, a.Nonce)
				if start == 0 || a.EligibleAt < start {
					start = a.EligibleAt
				}
				end = max(end, a.EligibleAt)
				if r.State.Sendable() && (next == 0 || a.EligibleAt < next) {
					next = a.EligibleAt
				}
			}
			if g.StartAt != start || g.EndAt != end || (g.Next == nil) != (next == 0) || g.Next != nil && *g.Next != next {
				t.Errorf("%+v, want %d, %d, %d", g, start, end, next)
			}
			members(t, q, g, hashes)
			got, err := q.Nonces(t.Context(), g.ID, nil, 1000)
			check(t, err)
			slices.Sort(nonces)
			slices.Reverse(nonces)
			if d := cmp.Diff(slices.Compact(nonces), got); d != "" {
				t.Errorf("nonces (-want +got):\n%s", d)
			}
			if top, err := q.Nonces(t.Context(), g.ID, nil, 2); err != nil || !slices.Equal(top, got[:2]) {
				t.Errorf("the highest nonces are %v, %v", top, err)
			}
		}
		pending(t, q, claims)
		lists(t, q, all)
	})
}

func members(t *testing.T, q groups.Query, g groups.Group, want []chain.Hash) {
	t.Helper()
	var got []chain.Hash
	for after := (*groups.Member)(nil); ; { // in pages of two
		page, err := q.Members(t.Context(), g.ID, nil, after, 2)
		check(t, err)
		for _, m := range page {
			got, after = append(got, m.Hash), &m
		}
		if len(page) < 2 {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("members (-want +got):\n%s", d)
	}
}

func pending(t *testing.T, q groups.Query, want []chain.Hash) {
	t.Helper()
	var got []chain.Hash
	for _, id := range []chain.ID{1, 2} {
		for after := eventlog.Position(0); ; {
			page, err := q.Claims(t.Context(), id, after, 2)
			check(t, err)
			for _, c := range page {
				if c.Key.Account != sender || c.Key.Key[0] != 9 || c.Position <= after {
					t.Errorf("claim %+v", c)
				}
				got, after = append(got, c.Hash), c.Position
			}
			if len(page) < 2 {
				break
			}
		}
	}
	order := func(a, b chain.Hash) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("claims (-want +got):\n%s", d)
	}
}

func lists(t *testing.T, q groups.Query, all []groups.Group) {
	t.Helper()
	if !slices.IsSortedFunc(all, func(a, b groups.Group) int { return int(b.Position) - int(a.Position) }) {
		t.Error("not newest first")
	}
	end := all[2].EndAt
	for name, c := range map[string]struct {
		filters groups.Filters
		fits    func(groups.Group) bool
	}{
		"everything": {groups.Filters{}, func(groups.Group) bool { return true }},
		"one chain":  {groups.Filters{Chain: 2}, func(g groups.Group) bool { return g.Chain == 2 }},
		"active":     {groups.Filters{EndAfter: &end}, func(g groups.Group) bool { return g.EndAt > end }},
		"both":       {groups.Filters{Chain: 1, EndAfter: &end}, func(g groups.Group) bool { return g.Chain == 1 && g.EndAt > end }},
	} {
		var want, got []groups.Group
		for _, g := range all {
			if c.fits(g) {
				want = append(want, g)
			}
		}
		for before := eventlog.Position(0); ; {
			page, err := q.List(t.Context(), sender, c.filters, before, 2)
			check(t, err)
			for _, g := range page {
				got, before = append(got, g), g.Position
			}
			if len(page) < 2 {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got, err := q.List(t.Context(), chain.Address{2}, groups.Filters{}, 0, 10); err != nil || len(got) != 0 {
		t.Errorf("a stranger has groups: %v, %v", got, err)
	}
	g := all[0]
	for id, want := range map[chain.ID]int{0: 2, g.Chain: 1, 99: 0} {
		if got, err := q.Find(t.Context(), id, sender, g.Group, groups.Filters{}); err != nil || len(got) != want {
			t.Errorf("on chain %d: %v, %v", id, got, err)
		}
	}
}
