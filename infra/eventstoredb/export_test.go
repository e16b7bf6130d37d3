package eventstoredb

import "time"

// LookEvery sets for how long the server may send nothing before it is asked.
func (l *Log) LookEvery(d time.Duration) { l.lookEvery = d }

// Through has the log call its server through another, before its first subscription.
func (l *Log) Through(wrap func(Server) Server) { l.server = wrap(l.server) }

// Connections is how many connections were made so far.
func (l *Log) Connections() int {
	s := l.server.(*supervisor) //nolint:forcetypeassert // of a real connection
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}
