package eventstoredb

import "time"

// LookEvery sets for how long the server may send nothing before it is asked.
func (l *Log) LookEvery(d time.Duration) { l.lookEvery = d }

// Connections is how many connections were made so far.
func (l *Log) Connections() int {
	s := l.server.(*supervisor) //nolint:forcetypeassert // of a real connection
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}
