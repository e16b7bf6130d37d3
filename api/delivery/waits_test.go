package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A transaction beyond a full window shows the nonce that it waits for, and since when. A
// transaction with a held account shows since when it is held.
func TestWaiting(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	var hashes []chain.Hash
	for nonce := range uint64(embedded.DefaultWindow + 1) {
		hashes = append(hashes, s.submit(signed(t, key, testChain, 3+nonce))[0].TxHash)
	}
	poor := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	s.catchUp()
	last := hashes[len(hashes)-1]
	wantMembers(t, s.one(last), map[string]string{
		"status": `"queued"`, "parked": "true", "waitingForNonce": "3", "waitingSince": fmt.Sprint(testTime.Unix()), "accountHeldAt": "null",
	})
	wantMembers(t, s.one(hashes[0]), map[string]string{"parked": "null", "waitingForNonce": "null", "waitingSince": "null"})

	s.elapse(10 * time.Second)
	held := s.now()
	s.work(poor, tx.Done{Attempts: 1, NextAt: held.Add(time.Second), Note: "retry: funds", Account: tx.Account{1}, Standing: tx.Unable})
	wantMembers(t, s.one(poor), map[string]string{"accountHeldAt": fmt.Sprint(held.Unix()), "note": `"retry: funds"`})
}
