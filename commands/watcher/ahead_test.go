package watcher

import (
	"context"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
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
