package rest

import (
	"sync"
	"time"
)

// Seldom limits how often something is logged for each name. The zero value is ready.
type Seldom struct {
	mu   sync.Mutex
	told map[string]time.Time
}

const (
	seldomEvery = time.Minute
	seldomNames = 1 << 10 // with more names, all are forgotten
)

// Due reports whether the line about a name is due at a time, and counts it as logged.
func (s *Seldom) Due(name string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.told[name]; known && at.Sub(last).Abs() < seldomEvery {
		return false
	}
	if s.told == nil || len(s.told) >= seldomNames {
		s.told = map[string]time.Time{}
	}
	s.told[name] = at
	return true
}
