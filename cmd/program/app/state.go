package app

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// state is this process's own state, for /health. The state of other replicas is not in it.
type state struct {
	started time.Time

	mu       sync.Mutex
	stopping bool
	readers  map[string]eventlog.Position
	halted   map[string]halt
	chains   map[chain.ID]blocks
}

// halt is an event that a reader cannot get past.
type halt struct {
	at   eventlog.Position
	why  string
	seen time.Time // last time
}

// haltedFor is how long a halt is reported after it was last seen. The replica with the reader's
// lease retries about once a second; a replica without it cannot see the halt.
const haltedFor = 30 * time.Second

type blocks struct{ head, final chain.Block }

func newState(now func() time.Time) *state {
	return &state{started: now(), readers: map[string]eventlog.Position{}, halted: map[string]halt{}, chains: map[chain.ID]blocks{}}
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

// reader records a reader's position. past reports whether the reader was halted before.
func (s *state) reader(name string, at eventlog.Position) (past bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[name] = at
	h, halted := s.halted[name]
	if past = halted && at >= h.at; past {
		delete(s.halted, name)
	}
	return past
}

// stuck records that a reader cannot get past an event. news reports whether that is new.
func (s *state) stuck(name string, e *eventlog.Stuck, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.halted[name]
	s.halted[name] = halt{at: e.At, why: e.Error(), seen: now}
	return !known || was.at != e.At
}

// unstuck forgets the halts that have not been seen for haltedFor, and returns their names.
func (s *state) unstuck(now time.Time) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, h := range s.halted {
		if now.Sub(h.seen) > haltedFor {
			delete(s.halted, name)
			names = append(names, name)
		}
	}
	return names
}

func (s *state) allHalted() map[string]halt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.halted)
}

func (s *state) noReader(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, name)
}

func (s *state) allReaders() map[string]eventlog.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.readers)
}

func (s *state) chain(id chain.ID, head, final chain.Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chains[id] = blocks{head, final}
}

func (s *state) heads() []rest.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := make([]rest.Head, 0, len(s.chains))
	for id, b := range s.chains {
		heads = append(heads, rest.Head{Chain: id, Head: b.head.Number, Final: b.final.Number})
	}
	slices.SortFunc(heads, func(x, y rest.Head) int { return cmp.Compare(x.Chain, y.Chain) })
	return heads
}
