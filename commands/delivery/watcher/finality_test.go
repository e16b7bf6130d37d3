package watcher

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

const moderato = chain.ID(42431)

// instant is a node that reports its head as final while atOnce is set.
type instant struct {
	*rpc.Reader
	atOnce bool
}

func (n *instant) Final(ctx context.Context, tip chain.Block) (chain.Block, error) {
	if n.atOnce {
		return n.Head(ctx)
	}
	return n.Reader.Final(ctx, tip)
}

// place is a chain, a node, and a watcher of a real store.
type place struct {
	chain *chaintest.Chain
	node  *instant
	db    *embedded.DB
	run   *run
}

func newPlace(t *testing.T) *place {
	t.Helper()
	c := chaintest.New(chaintest.Options{Chain: moderato, Decode: chaintest.DecodePlain})
	t.Cleanup(c.Close)
	server := httptest.NewServer(c.Node("a"))
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: moderato, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}}})
	must(t, err)
	t.Cleanup(pool.Close)
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	p := &place{chain: c, node: &instant{Reader: pool.Reader()}, db: db}
	p.run = (&Watcher{
		Chain: moderato, Node: p.node, Board: db.Work(),
		Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
		Now:          time.Now, Log: slog.New(slog.DiscardHandler),
	}).start(nil)
	return p
}

// accept records a transaction and puts it on the board.
func (p *place) accept(t *testing.T, s chain.Signed) {
	t.Helper()
	a := tx.Accepted{Chain: moderato, Hash: s.Hash, Sender: s.Sender, NonceKey: s.NonceKey, Nonce: s.Nonce, Window: s.Window, At: time.Now()}
	p.handle(t, s.Hash, tx.Accept{Accepted: a})
	row := tx.Work{Sender: s.Sender, NonceKey: s.NonceKey, Nonce: s.Nonce, Phase: tx.Open, NextAt: time.Now()}
	p.apply(t, tx.Change{Chain: moderato, Hash: s.Hash, Open: &row})
}

func (p *place) handle(t *testing.T, hash chain.Hash, c tx.Command) tx.State {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{})
	must(t, err)
	r, err := p.run.Transactions.Handle(t.Context(), tx.Stream(moderato, hash), c, o)
	must(t, err)
	return r.State
}

func (p *place) apply(t *testing.T, c tx.Change) {
	t.Helper()
	at, err := p.db.Work().Checkpoint(t.Context(), "test")
	must(t, err)
	must(t, p.db.Work().Apply(t.Context(), "test", at, at+1, []tx.Change{c}))
}

// step runs a step of the watcher, and returns the transaction's state.
func (p *place) step(t *testing.T, hash chain.Hash) tx.State {
	t.Helper()
	must(t, p.run.step(t.Context()))
	return p.state(t, hash)
}

func (p *place) state(t *testing.T, hash chain.Hash) tx.State {
	t.Helper()
	r, err := p.run.Transactions.Load(t.Context(), tx.Stream(moderato, hash))
	must(t, err)
	return r.State
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func signed(nonce uint64) (chain.Signed, []byte) {
	s := chain.Signed{Chain: moderato, Type: 0x76, Sender: chain.Address{0xa1}, NonceKey: chain.NonceKey{31: 5}, Nonce: nonce, Gas: 50_000}
	raw := chaintest.EncodePlain(s)
	s.Hash = chain.Keccak(raw)
	return s, raw
}

// A transaction's block is replaced by one of equal height, which the node calls final at
// once. While the fork is doubted for a step, the final block must not seal the old block's
// verdict.
func TestFinalBlockOfAnotherBranchSealsNothing(t *testing.T) {
	p := newPlace(t)
	p.chain.StallFinality(true)
	mine(t, p)
	s, raw := signed(0)
	p.accept(t, s)
	p.step(t, s.Hash)
	mine(t, p, raw)
	state := p.step(t, s.Hash)
	if state.Verdict != tx.StatusExecuted || state.Sealed {
		t.Fatalf("mined: %s, sealed %v", state.Status, state.Sealed)
	}
	p.apply(t, tx.Change{Chain: moderato, Hash: s.Hash, Announce: &tx.Verdict{Status: state.Verdict, Block: state.Block}})

	must(t, p.chain.Reorg(1, false))
	p.node.atOnce = true
	if state = p.step(t, s.Hash); state.Sealed || state.Violated {
		t.Fatalf("sealed by a block of another branch: %+v", state)
	}
	if state = p.step(t, s.Hash); state.Status != tx.StatusBroadcasting || state.Violated {
		t.Fatalf("once the fork is believed: %s, violated %v", state.Status, state.Violated)
	}
}

func mine(t *testing.T, p *place, others ...[]byte) {
	t.Helper()
	_, err := p.chain.Mine(others...)
	must(t, err)
}
