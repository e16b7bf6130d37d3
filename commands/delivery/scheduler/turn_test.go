package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// A client's backlog delays neither another client's first attempt nor the transactions
// that the relay has signed for the client itself: lanes are shared.
func TestBacklogDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		d := deliver(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()}, chaintest.Rules{}, time.Now)
		var flood []chain.Signed
		for n := range byte(200) {
			s := own(0)
			s.Sender = chain.Address{0xb0, n}
			flood = append(flood, s)
		}
		d.submitted("mallory", flood...)
		time.Sleep(time.Minute)
		mine := d.submitted("wallet", own(0))[0]
		signed := own(0)
		signed.Sender = chain.Address{0xc0}
		raw := chaintest.EncodePlain(signed)
		answers, err := d.submit.Batch(t.Context(), id, [][]byte{raw}, commands.From("mallory"), eventlog.Meta{Actor: lane.Actor})
		check(t, err)
		check(t, answers[0].Err)
		feed(t, db.Log(), db.Work())
		leased, _, err := db.Work().Lease(t.Context(), id, "worker", time.Minute, 6, 6)
		check(t, err)
		has := func(hash chain.Hash) bool {
			return slices.ContainsFunc(leased, func(w tx.Work) bool { return w.Hash == hash })
		}
		if len(leased) != 6 || !has(mine) || !has(chain.Keccak(raw)) {
			t.Errorf("of %d leased rows one is another client's: %v, one the relay's: %v", len(leased), has(mine), has(chain.Keccak(raw)))
		}
		if got := answers[0].State.Accepted.Client; got != "mallory" {
			t.Errorf("the relay's attempt belongs to %q", got)
		}
	})
}
