package watcher

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

var errTrouble = errors.New("trouble")

// hearsNothing is a node that finds neither receipts by hash nor sure nonces while hearsNothing is set.
type hearsNothing struct {
	Node
	hearsNothing bool
}

func (n *hearsNothing) SureNonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	if n.hearsNothing {
		return nil, errTrouble
	}
	return n.Node.SureNonces(ctx, at, sequences)
}

func (n *hearsNothing) FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	if n.hearsNothing {
		return nil, errTrouble
	}
	return n.Node.FindReceipt(ctx, hash, at)
}

// blind is a board that returns no verdicts while blind is set.
type blind struct {
	Board
	blind bool
}

func (b *blind) Verdicts(ctx context.Context, moderato chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error) {
	if b.blind {
		return nil, errTrouble
	}
	return b.Board.Verdicts(ctx, moderato, phase, from, to, after, limit)
}

// A transaction whose expiry cannot be decided blocks neither the sealing of others nor the
// remembering of blocks. Its expiry is recorded as soon as possible, without waiting for
// another head.
func TestTroubleWithExpiryHoldsUpNothingElse(t *testing.T) {
	p := newPlace(t)
	node := &hearsNothing{Node: p.node, hearsNothing: true}
	p.run.Node = node
	good, raw := signed(0)
	late := chain.Signed{Chain: moderato, Hash: chain.Keccak([]byte("late")), Sender: chain.Address{0xb0}, Window: chain.Window{Before: 1}}
	p.accept(t, good)
	p.handle(t, late.Hash, tx.Accept{Accepted: tx.Accepted{Chain: moderato, Hash: late.Hash, Sender: late.Sender, Window: late.Window}})
	p.apply(t, tx.Change{Chain: moderato, Hash: late.Hash, Open: &tx.Work{Sender: late.Sender, ExpiresAt: 1, Phase: tx.Open, NextAt: time.Now()}})

	mine(t, p, raw)
	must(t, p.run.step(t.Context()))
	p.apply(t, tx.Change{Chain: moderato, Hash: good.Hash, Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: p.chain.Head()}})
	mine(t, p)
	must(t, p.run.step(t.Context()))
	if s := p.state(t, late.Hash); s.Status != tx.StatusQueued {
		t.Errorf("in trouble it is %s", s.Status)
	}
	if s := p.state(t, good.Hash); !s.Sealed {
		t.Errorf("not sealed because of another: %s", s.Status)
	}
	if blocks, err := p.db.Work().Blocks(t.Context(), moderato); err != nil || len(blocks) < 2 {
		t.Errorf("%d blocks remembered, %v", len(blocks), err)
	}
	node.hearsNothing = false
	if s := p.step(t, late.Hash); s.Status != tx.StatusExpired {
		t.Errorf("after the trouble, at the same head: %s", s.Status)
	}
}

// A process ends between accepting a fork and revoking the verdicts of the old branch: the
// saved memory lets the next process find the fork.
func TestForkOutlivesTheProcess(t *testing.T) {
	p := newPlace(t)
	board := &blind{Board: p.db.Work()}
	p.run.Board = board
	p.chain.StallFinality(true)
	mine(t, p)
	s, raw := signed(0)
	p.accept(t, s)
	p.step(t, s.Hash)
	mine(t, p, raw)
	state := p.step(t, s.Hash)
	p.apply(t, tx.Change{Chain: moderato, Hash: s.Hash, Announce: &tx.Verdict{Status: state.Verdict, Block: state.Block}})

	must(t, p.chain.Reorg(1, false))
	mine(t, p) // one deeper, so not doubted
	board.blind = true
	if err := p.run.step(t.Context()); !errors.Is(err, errTrouble) {
		t.Fatalf("step with trouble: %v", err)
	}
	board.blind = false
	blocks, err := p.db.Work().Blocks(t.Context(), moderato)
	must(t, err)
	p.run = p.run.start(blocks)
	if state = p.step(t, s.Hash); state.Status != tx.StatusBroadcasting {
		t.Errorf("the next process leaves it %s", state.Status)
	}
}

// An error is logged when it begins, changes and ends: not at every head.
func TestTroubleIsToldOnce(t *testing.T) {
	var log strings.Builder
	w := &Watcher{Chain: moderato, Log: slog.New(slog.NewTextHandler(&log, nil))}
	r := w.start(nil)
	for _, err := range []error{nil, errTrouble, errTrouble, errors.New("other"), nil, nil, errTrouble} {
		r.tell(err)
	}
	var told []string
	for line := range strings.Lines(log.String()) {
		_, text, _ := strings.Cut(line, "msg=")
		told = append(told, strings.TrimSpace(text))
	}
	want := []string{
		`"watch step failed" chain=42431 err=trouble`, `"watch step failed" chain=42431 err=other`,
		`"watching again" chain=42431`, `"watch step failed" chain=42431 err=trouble`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
