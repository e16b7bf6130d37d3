package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// Mallory submits a wallet's signed bytes before the wallet does, behind a backlog. The wallet's own
// submission makes the transaction due in its turn, on its account, also in a queue that is rebuilt
// from the log.
func TestBytesSubmittedFirstByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, rebuilt := open(t), open(t)
		d := deliver(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()}, chaintest.Rules{}, time.Now)
		var flood []chain.Signed
		for n := range byte(200) {
			s := own(0)
			s.Sender = chain.Address{0xb0, n}
			flood = append(flood, s)
		}
		d.submitted("mallory", flood...)
		time.Sleep(time.Minute)
		d.submitted("mallory", own(0))
		hash := d.submitted("wallet", own(0))[0]
		d.submitted("wallet", own(0))
		signed := chaintest.EncodePlain(own(0))
		_, err := d.submit.Batch(t.Context(), id, [][]byte{signed}, commands.From("ann"), eventlog.Meta{Actor: lane.Actor})
		check(t, err)
		r, err := d.submit.Transactions.Load(t.Context(), tx.Stream(id, hash))
		check(t, err)
		for _, work := range []*embedded.Work{db.Work(), rebuilt.Work()} {
			owners := map[string]string{}
			feed(t, db.Log(), work)
			for range 3 {
				leased, _, err := work.Lease(t.Context(), id, "worker", time.Minute, 2, 2)
				check(t, err)
				for _, w := range leased {
					if w.Hash == hash {
						owners[w.Client] = r.State.OwnerOf(w.Account)
						check(t, work.Done(t.Context(), "worker", []tx.Done{{Chain: id, Hash: hash, Account: w.Account, NextAt: time.Now().Add(time.Hour)}}))
					}
				}
			}
			if diff := cmp.Diff(map[string]string{"wallet": "wallet", "": "ann"}, owners); diff != "" {
				t.Errorf("leased in the turns of, on the accounts of (-want +got)\n%s", diff)
			}
		}
	})
}
