package eventstoredb

import (
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

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

// Interrupted gathers an event behind which its subscription's error waits.
func (l *Log) Interrupted(e *esdb.RecordedEvent, err error) (eventlog.Batch, error) {
	waiting := feed{items: make(chan item, 1)}
	waiting.items <- item{err: err}
	at := eventlog.Position(e.Position.Commit)
	return l.gather(waiting, item{Notification: Notification{Event: e, At: at}}, at-1)
}
