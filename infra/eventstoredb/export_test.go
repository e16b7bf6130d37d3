package eventstoredb

import "time"

// LookEvery sets for how long the server may send nothing before it is asked.
func (l *Log) LookEvery(d time.Duration) { l.lookEvery = d }

// Clients is how many clients were made so far.
func (l *Log) Clients() int {
	s := l.server.(*supervisor) //nolint:forcetypeassert // of a real connection
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}
