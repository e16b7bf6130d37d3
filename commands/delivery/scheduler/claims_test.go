package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

var (
	victim    = chain.Address{0xa1}
	throwaway = chain.Address{0xee}
	strangers = chain.AccessKey{Account: victim, Key: throwaway}
)

// forged returns a transaction that claims to be the victim's by a throw-away access key, a
// year ahead.
func forged(nonce uint64) chain.Signed {
	key := strangers.Key
	return chain.Signed{
		Chain: id, Type: 0x76, Sender: victim, Signature: chain.Keychain, AccessKey: &key, AccessKind: chain.P256,
		NonceKey: chain.NonceKey{31: 1}, Nonce: nonce, Gas: 50_000,
		Window: chain.Window{After: uint64(time.Now().Add(365 * 24 * time.Hour).Unix())},
	}
}

// submitted submits transactions of a client.
func (d *delivery) submitted(client string, all ...chain.Signed) (hashes []chain.Hash) {
	d.t.Helper()
	var raws [][]byte
	for _, s := range all {
		raws = append(raws, chaintest.EncodePlain(s))
	}
	answers, err := d.submit.Batch(d.t.Context(), id, raws, commands.From(client), eventlog.Meta{Actor: client})
	check(d.t, err)
	for i, a := range answers {
		check(d.t, a.Err)
		hashes = append(hashes, chain.Keccak(raws[i]))
	}
	return hashes
}

func own(nonce uint64) chain.Signed {
	s := forged(nonce)
	s.Signature, s.AccessKey, s.AccessKind, s.Window = chain.Secp256k1, nil, "", chain.Window{}
	return s
}

// A client posts a window full of transactions in the victim's name. They do not park the
// victim's own transactions, change the nonce reported as free, or wake or hold any of the
// victim's rows. The queue rebuilt from the log agrees.
func TestForgedClaimsParkNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		d := deliver(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()}, chaintest.Rules{}, time.Now)
		var claims []chain.Signed
		for n := range uint64(2 * embedded.DefaultWindow) {
			claims = append(claims, forged(n))
		}
		attack := d.submitted("mallory", claims...)
		mine := d.submitted("wallet", own(100), own(101))
		rebuilt := open(t)
		for name, work := range map[string]*embedded.Work{"live": db.Work(), "rebuilt": rebuilt.Work()} {
			feed(t, db.Log(), work)
			next, err := work.NextFree(t.Context(), chain.Sequence{Chain: id, Sender: victim, Key: chain.NonceKey{31: 1}}, 0, nil)
			check(t, err)
			if next != 0 {
				t.Errorf("%s: the victim's next free nonce is %d, want 0", name, next)
			}
			leased, _, err := work.Lease(t.Context(), id, "worker", time.Minute, 10, 10)
			check(t, err)
			var got []chain.Hash
			for _, w := range leased {
				got = append(got, w.Hash)
			}
			slices.SortFunc(got, func(a, b chain.Hash) int { return slices.Compare(a[:], b[:]) })
			slices.SortFunc(mine, func(a, b chain.Hash) int { return slices.Compare(a[:], b[:]) })
			if !slices.Equal(got, mine) {
				t.Errorf("%s: leased %v, want the victim's %v", name, got, mine)
			}
		}
		// Once the chain has confirmed the key, its transactions take their place.
		o := tx.ConfirmGroup{Block: chain.Block{Number: 7, Hash: chain.Hash{7}}, At: time.Now()}
		if !command(t, d.submit.Transactions, attack[0], o) {
			t.Fatal("a claim without a group is not confirmed")
		}
		feed(t, db.Log(), db.Work())
		next, err := db.Work().NextFree(t.Context(), chain.Sequence{Chain: id, Sender: victim, Key: chain.NonceKey{31: 1}}, 0, nil)
		check(t, err)
		if next != 1 {
			t.Errorf("after nonce 0 was confirmed the next free nonce is %d", next)
		}
	})
}

// A transaction with an authorization of its key by the account itself has its place at
// once.
func TestAuthorizedKeyHasItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		d := deliver(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()}, chaintest.Rules{}, time.Now)
		s, late := forged(0), forged(1)
		s.Authorized, s.AuthorizedUntil = true, uint64(time.Now().Add(time.Hour).Unix())
		late.Authorized, late.AuthorizedUntil = true, uint64(time.Now().Add(-time.Hour).Unix())
		d.submitted("wallet", s, late)
		feed(t, db.Log(), db.Work())
		next, err := db.Work().NextFree(t.Context(), chain.Sequence{Chain: id, Sender: victim, Key: chain.NonceKey{31: 1}}, 0, nil)
		check(t, err)
		if next != 1 {
			t.Errorf("the next free nonce is %d, want 1: nonce 0 is authorized, the authorization of nonce 1 has ended", next)
		}
	})
}
