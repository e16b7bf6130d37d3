package tx_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A client that submits a transaction's bytes after another one is due at once, unless a node has
// accepted them: an attempt would show the first client that there is another.
func TestOwnerThatJoins(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(time.Hour)
	for _, c := range []struct {
		name string
		row  tx.Work
		want time.Time
	}{
		{"never sent", tx.Work{}, now},
		{"a node has it", tx.Work{Attempts: 1, Note: "taken"}, later},
		{"its account is on hold", tx.Work{Attempts: 1, Note: "retry: insufficient funds", HeldSince: now}, now},
		{"the first client's calls are refused", tx.Work{Attempts: 3, Note: "retry: rate_limited"}, now},
	} {
		f := tx.NewFold(tx.Clock{Now: now})
		c.row.Chain, c.row.Hash, c.row.Phase, c.row.NextAt, c.row.Client = 1, chain.Hash{1}, tx.Open, later, "mallory"
		f.Load(tx.Row{Work: c.row})
		f.Apply(tx.Change{Chain: 1, Hash: chain.Hash{1}, Join: &tx.Owner{Client: "mallory", NextAt: now}})
		f.Apply(tx.Change{Chain: 1, Hash: chain.Hash{1}, Join: &tx.Owner{Client: "alice", NextAt: now}})
		got := f.Folded()
		if len(got.Joined) != 1 || got.Joined[0].Client != "alice" || !got.Joined[0].NextAt.Equal(c.want) {
			t.Errorf("%s: joined %+v, want due %s", c.name, got.Joined, c.want)
		}
	}
}
