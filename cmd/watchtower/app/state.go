package app

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// state is what this process has seen of itself, for /health. What other replicas
// own is not in it.
type state struct {
	started time.Time

	mu       sync.Mutex
	stopping bool
	readers  map[string]event.Position
	chains   map[chain.ID]blocks
}

type blocks struct{ head, final chain.Block }

func newState(now func() time.Time) *state {
	return &state{started: now(), readers: map[string]event.Position{}, chains: map[chain.ID]blocks{}}
}

func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

func (s *state) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

func (s *state) reader(name string, at event.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[name] = at
}

func (s *state) noReader(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, name)
}

func (s *state) allReaders() map[string]event.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.readers)
}

func (s *state) chain(id chain.ID, head, final chain.Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chains[id] = blocks{head, final}
}

func (s *state) heads() []api.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := make([]api.Head, 0, len(s.chains))
	for id, b := range s.chains {
		heads = append(heads, api.Head{Chain: id, Head: b.head.Number, Final: b.final.Number})
	}
	slices.SortFunc(heads, func(x, y api.Head) int { return cmp.Compare(x.Chain, y.Chain) })
	return heads
}
