package watcher

import (
	"context"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// shaky is a node whose reads of blocks fail at intervals, and that records the number of
// concurrent reads.
type shaky struct {
	Node
	mu        sync.Mutex
	reads     int
	now, most int
	together  chan struct{} // closed when aheadMax are in progress
}

func (s *shaky) enter(every int) (fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.now++
	if s.most = max(s.most, s.now); s.now == aheadMax {
		select {
		case <-s.together:
		default:
			close(s.together)
		}
	}
	return s.reads%every == 0
}

func (s *shaky) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

func (s *shaky) BlockWhole(ctx context.Context, number uint64) (chain.Block, chain.Contents, error) {
	defer s.leave()
	if s.enter(10) {
		return chain.Block{}, chain.Contents{}, errTrouble
	}
	select { // the first few wait for each other
	case <-s.together:
	case <-ctx.Done():
		return chain.Block{}, chain.Contents{}, ctx.Err()
	}
	return s.Node.BlockWhole(ctx, number)
}

func (s *shaky) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error) {
	defer s.leave()
	if s.enter(3) {
		return chain.Block{}, chain.Contents{}, errTrouble
	}
	return s.Node.BlockByHash(ctx, hash)
}

// A watcher that is far behind reads many blocks concurrently. A failed read causes no
// second read of the others, so it reaches the head of a distant chain despite errors.
func TestCatchingUpThroughTrouble(t *testing.T) {
	const behind = 1000
	p := newPlace(t)
	node := &shaky{Node: p.node, together: make(chan struct{})}
	p.run.Node = node
	mine(t, p)
	if err := p.run.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range behind {
		mine(t, p)
	}
	steps := 0
	for p.run.tip().Hash != p.chain.Head().Hash {
		if steps++; steps > behind/stretch*8 {
			t.Fatalf("block %d of %d after %d steps", p.run.tip().Number, p.chain.Head().Number, steps)
		}
		if err := p.run.step(t.Context()); err != nil {
			t.Log(err)
		}
	}
	if most := behind + behind/4; node.reads > most {
		t.Errorf("%d reads of %d blocks, want at most %d", node.reads, behind, most)
	}
	if node.most != aheadMax {
		t.Errorf("%d reads at once, want %d", node.most, aheadMax)
	}
}

// A watcher that is far behind loses its lease while it reads one stretch of blocks: the next
// process goes on behind the blocks that were read, and not at the stretch's beginning.
func TestCatchingUpAcrossTakeovers(t *testing.T) {
	const behind, each = 100, 10
	p := newPlace(t)
	mine(t, p)
	if err := p.run.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range behind {
		mine(t, p)
	}
	board := p.run.Board
	for takeover := 1; p.run.tip().Hash != p.chain.Head().Hash; takeover++ {
		if takeover > behind/(each-blocksMax) {
			t.Fatalf("block %d of %d after %d takeovers", p.run.tip().Number, p.chain.Head().Number, takeover)
		}
		ctx, lose := context.WithCancel(t.Context())
		blocks, err := board.Blocks(ctx, moderato)
		must(t, err)
		p.run = p.run.start(blocks) // the memory of a new process
		p.run.Board = &brief{Board: board, left: each, lose: lose}
		if err := p.run.step(ctx); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		lose()
	}
}

// brief is a board whose user loses its lease after a number of blocks.
type brief struct {
	Board
	mu   sync.Mutex
	left int
	lose func()
}

func (b *brief) Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left < 0 {
		b.lose()
		return nil, context.Canceled
	}
	return b.Board.Find(ctx, id, hashes)
}
