package watcher

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// version returns the number of events of a transaction.
func (p *place) version(t *testing.T, hash chain.Hash) eventlog.Version {
	t.Helper()
	r, err := p.run.Transactions.Load(t.Context(), tx.Stream(moderato, hash))
	must(t, err)
	return r.Version
}

// wantStale calls Stale, and checks its result and the number of the transaction's events
// afterwards.
func (p *place) wantStale(t *testing.T, hash chain.Hash, refusal error, says string, events eventlog.Version) tx.State {
	t.Helper()
	s, err := p.run.Stale(t.Context(), p.run.Node, hash, eventlog.Meta{Actor: "owner"})
	if !errors.Is(err, refusal) || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("answered %v, want %v with %q", err, refusal, says)
	}
	if n := p.version(t, hash); n != events {
		t.Errorf("%d events, want %d", n, events)
	}
	return s
}

// rivalOf returns a transaction with the same nonce and another hash.
func rivalOf(s chain.Signed) []byte {
	s.Gas++
	return chaintest.EncodePlain(s)
}

func TestStaleOnceTheNonceIsUsed(t *testing.T) {
	p := newPlace(t)
	s, _ := signed(0)
	p.accept(t, s)
	p.wantStale(t, s.Hash, tx.ErrNonceCurrent, "the chain's next nonce is 0, this is 0", 1)

	behind, _ := signed(3)
	p.accept(t, behind)
	p.wantStale(t, behind.Hash, tx.ErrNonceCurrent, "the chain's next nonce is 0, this is 3", 1)

	mine(t, p, rivalOf(s))
	if got := p.wantStale(t, s.Hash, nil, "", 2); got.Status != tx.StatusStale || got.Block.Hash != p.chain.Head().Hash {
		t.Errorf("%s in block %d", got.Status, got.Block.Number)
	}
	p.wantStale(t, s.Hash, nil, "", 2) // and again
	p.wantStale(t, behind.Hash, tx.ErrNonceCurrent, "the chain's next nonce is 1, this is 3", 1)
}

// The used nonce is the transaction's own: it is executed, not stale.
func TestStaleFindsTheReceipt(t *testing.T) {
	p := newPlace(t)
	s, raw := signed(0)
	p.accept(t, s)
	mine(t, p, raw)
	for range 2 {
		if got := p.wantStale(t, s.Hash, tx.ErrSettled, "it is executed", 2); got.Receipt == nil {
			t.Error("executed without a receipt")
		}
	}
}

func TestStaleOfWhatCannotBe(t *testing.T) {
	p := newPlace(t)
	p.wantStale(t, chain.Hash{1}, tx.ErrUnknown, "", 0)

	expiring := chain.Signed{Hash: chain.Hash{2}, Sender: chain.Address{2}, NonceKey: chain.ExpiringKey, Window: chain.Window{Before: 1 << 40}}
	p.accept(t, expiring)
	p.wantStale(t, expiring.Hash, tx.ErrNonceCurrent, "has no sequence", 1)

	canceled, _ := signed(0)
	p.accept(t, canceled)
	p.handle(t, canceled.Hash, tx.Cancel{Reason: "test"})
	mine(t, p, rivalOf(canceled))
	p.wantStale(t, canceled.Hash, tx.ErrSettled, "it is canceled_locally", 2)
}

// headless is a node that cannot return its head.
type headless struct{ Node }

func (headless) Head(context.Context) (chain.Block, error) { return chain.Block{}, errTrouble }

// Without the chain nothing is known, and nothing is changed.
func TestStaleWithoutTheChain(t *testing.T) {
	p := newPlace(t)
	s, _ := signed(0)
	p.accept(t, s)
	mine(t, p, rivalOf(s))
	p.run.Node = &hearsNothing{Node: p.node, hearsNothing: true}
	p.wantStale(t, s.Hash, commands.ErrChainAway, "receipt", 1)
	p.run.Node = headless{p.node}
	p.wantStale(t, s.Hash, commands.ErrChainAway, "head", 1)
	p.run.Node = p.node
	p.wantStale(t, s.Hash, nil, "", 2)
}
