package eventstoredb_test

import (
	"context"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// A reader that has caught up gets the event that another process appends after the log has
// read where its end is, and before the log's subscription to later events begins. Such a
// reader takes events from memory, where the next event would carry it past a missing one.
func TestTailMissesNothingAtItsBeginning(t *testing.T) {
	server := double(t, esdbtest.Options{})
	other := open(t, server.URL(), eventstoredb.Options{}).log
	stands(t, other, "s", 0, 1)
	l := open(t, server.URL(), eventstoredb.Options{}).log
	live := make(chan struct{})
	caughtUp := sync.OnceFunc(func() { close(live) })
	defer caughtUp() // a test that fails early lets the log close
	l.Through(func(s eventstoredb.Server) eventstoredb.Server {
		return &beginning{
			Server: s,
			// A reader that had not caught up yet would read the second event from the server.
			looked: sync.OnceFunc(func() { <-live; stands(t, other, "s", 1, 1) }),
			// The third event comes in any case, so that a missing second one is noticed without waiting.
			subscribes: sync.OnceFunc(func() { stands(t, other, "s", 2, 1) }),
		}
	})
	version := eventlog.Version(0)
	for b, err := range l.Subscribe(context.WithValue(soon(t), readers{}, true), 0, eventlog.Filter{}, 10) {
		must(t, err)
		for _, e := range b.Events {
			if version++; e.Version != version {
				t.Fatalf("version %d comes where %d has to", e.Version, version)
			}
		}
		if b.Live {
			caughtUp()
		}
		if version == 3 {
			break
		}
	}
}

// readers is the key of a value in readers' contexts. The log's own goroutine, which keeps
// the log's end in memory for all readers, calls the server without that value.
type readers struct{}

// beginning is a server that calls back while the log begins to keep its end in memory.
type beginning struct {
	eventstoredb.Server
	looked     func() // after the server has answered where the end is, before the log learns it
	subscribes func() // before the subscription begins
}

func (s *beginning) ReadAll(ctx context.Context, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	page, err := s.Server.ReadAll(ctx, o, count)
	if ctx.Value(readers{}) == nil {
		s.looked()
	}
	return page, err
}

func (s *beginning) Subscribe(ctx context.Context, o esdb.SubscribeToAllOptions, each func(eventstoredb.Notification) error) error {
	s.subscribes()
	return s.Server.Subscribe(ctx, o, each)
}
