package feed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// parked returns a group's parked streams.
func (s *stage) parked(group string) []consumer.Parked {
	s.t.Helper()
	all, err := s.feed.Groups().Parked(soon(s.t), feed.Name(group, feed.All))
	must(s.t, err)
	return all
}

func (s *stage) wish(group string, stream eventlog.Stream, at eventlog.Version, w consumer.Wish) {
	s.t.Helper()
	must(s.t, s.feed.Groups().Wish(soon(s.t), feed.Name(group, feed.All), stream, at, w))
}

var errPoison = errors.New("it cannot be handled")

// handle acks messages and returns their origins. It nacks a version of the stream while
// poisoned returns true for it.
func handle(messages <-chan *message.Message, stream eventlog.Stream, poisoned func(eventlog.Version) bool) <-chan feed.Origin {
	acked := make(chan feed.Origin, 100)
	go func() {
		defer close(acked)
		for m := range messages {
			o, err := feed.OriginOf(m)
			if err != nil || o.Stream == stream && poisoned(o.Version) {
				feed.Nack(m, errPoison)
				continue
			}
			acked <- o
			m.Ack()
		}
	}()
	return acked
}

func wantAcks(t *testing.T, acked <-chan feed.Origin, stream eventlog.Stream, versions ...eventlog.Version) {
	t.Helper()
	for _, want := range versions {
		select {
		case o := <-acked:
			if o.Stream != stream || o.Version != want {
				t.Fatalf("%s version %d, want %s version %d", o.Stream, o.Version, stream, want)
			}
		case <-soon(t).Done():
			t.Fatalf("%s version %d does not come", stream, want)
		}
	}
}

// nothing checks that no message comes for a while.
func nothing(t *testing.T, acked <-chan feed.Origin) {
	t.Helper()
	select {
	case o := <-acked:
		t.Fatalf("%v came", o)
	case <-time.After(30 * time.Millisecond):
	}
}

// A nacked event comes again, and other events of its lane after it.
func TestNack(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 2)
	_, messages := s.consume("g")
	var ids []string
	for range 4 {
		m, o := next(t, messages)
		if o.Version != 1 {
			t.Fatalf("version %d came", o.Version)
		}
		ids = append(ids, m.UUID)
		if len(ids) < 4 {
			m.Nack()
			continue
		}
		m.Ack()
	}
	if m, o := next(t, messages); o.Version != 2 || m.UUID == ids[0] || ids[3] != ids[0] {
		t.Errorf("version %d", o.Version)
	}
	if p := s.parked("g"); len(p) != 0 {
		t.Errorf("parked: %v", p)
	}
}

func TestPoisonedStream(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 3)
	o := s.options("g")
	o.Lanes, o.Retries = 1, 2
	sub, messages := s.subscribe(o, feed.All)
	poisoned := make(chan eventlog.Version, 1)
	poisoned <- 2
	acked := handle(messages, "tx-a", func(v eventlog.Version) bool {
		p := <-poisoned
		poisoned <- p
		return v == p
	})
	wantAcks(t, acked, "tx-a", 1)
	s.happened("tx-b", 0, 2)
	wantAcks(t, acked, "tx-b", 1, 2)
	s.happened("tx-a", 3, 1)
	nothing(t, acked)
	if p := s.parked("g"); len(p) != 1 || p[0].Stream != "tx-a" || p[0].Version != 2 || p[0].Position != 2 || p[0].Attempts != 3 || p[0].Error != errPoison.Error() {
		t.Fatalf("parked: %+v", p)
	}
	eventually(t, "the checkpoint moves over what is parked", func() bool { return s.position("g", feed.All) == 6 })

	s.wish("g", "tx-a", 2, consumer.Retry) // it fails again
	eventually(t, "the wish is granted", func() bool { p := s.parked("g"); return len(p) == 1 && p[0].Wish == consumer.Wait })
	nothing(t, acked)

	<-poisoned
	poisoned <- 4 // 2 succeeds now
	s.wish("g", "tx-a", 2, consumer.Retry)
	wantAcks(t, acked, "tx-a", 2, 3)
	eventually(t, "parked at the next one", func() bool { p := s.parked("g"); return len(p) == 1 && p[0].Version == 4 })

	must(t, sub.Close()) // another process takes over
	_, messages = s.subscribe(o, feed.All)
	acked = handle(messages, "tx-a", func(v eventlog.Version) bool { return v == 4 })
	s.happened("tx-a", 4, 2)
	nothing(t, acked)
	s.wish("g", "tx-a", 4, consumer.Skip)
	wantAcks(t, acked, "tx-a", 5, 6)
	s.happened("tx-a", 6, 2)
	wantAcks(t, acked, "tx-a", 7, 8)
	if p := s.parked("g"); len(p) != 0 {
		t.Errorf("parked still: %v", p)
	}
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 10 })
}

// If too many streams fail, the events are not the cause: no further stream is parked.
func TestMostParked(t *testing.T) {
	s := newStage(t)
	for _, stream := range []eventlog.Stream{"tx-a", "tx-b", "tx-c"} {
		s.happened(stream, 0, 1)
	}
	o := s.options("g")
	o.Lanes, o.Retries, o.MostParked, o.TTL = 1, 1, 2, patience // so that no message repeats because a claim has lapsed
	_, messages := s.subscribe(o, feed.All)
	tries := map[eventlog.Stream]int{}
	for range 20 {
		m, o := next(t, messages)
		tries[o.Stream]++
		m.Nack()
	}
	if len(s.parked("g")) != 2 || tries["tx-c"] != 16 {
		t.Errorf("parked %v, tries %v", s.parked("g"), tries)
	}
	ack(t, messages)
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 3 })
}

// Another process has the group: this one's parking and saving are refused, and it ends.
func TestSuperseded(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 2)
	o := s.options("g")
	stolen := &thief{Groups: s.feed.Groups()}
	o.Groups = stolen
	_, messages := s.subscribe(o, feed.All)
	m, _ := next(t, messages)
	stolen.steal(t, feed.Name("g", feed.All))
	m.Ack()
	eventually(t, "it notices", func() bool {
		select {
		case m := <-messages:
			m.Ack() // until it notices
		default:
		}
		return stolen.refused.Load() > 0
	})
	if at := s.position("g", feed.All); at != 0 {
		t.Errorf("the checkpoint was moved to %d", at)
	}
}

// An event that cannot be upcast counts as nacked.
func TestUpcast(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 1)
	s.happened("tx-b", 0, 1)
	o := s.options("g")
	o.Lanes, o.Retries = 1, 1
	o.Upcast = func(name string, data []byte) (string, []byte, error) {
		if string(data) != `{"n":1}` {
			return "", nil, errPoison
		}
		return "test.happened.v2", []byte(`{"n":2}`), nil
	}
	_, messages := s.subscribe(o, feed.All)
	m, origin := next(t, messages)
	if origin.Name != "test.happened.v2" || m.Metadata.Get(feed.KeyRecordedName) != "test.happened.v1" || string(m.Payload) != `{"n":2}` {
		t.Errorf("%v %s", m.Metadata, m.Payload)
	}
	m.Ack()
	ack(t, messages)
	s.happened("tx-c", 0, 2) // the second of these cannot
	ack(t, messages)
	eventually(t, "it is parked", func() bool { p := s.parked("g"); return len(p) == 1 && p[0].Version == 2 })
}

// While the rows of parked streams cannot be written, the checkpoint does not move.
func TestParkingFails(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 1)
	o := s.options("g")
	o.Retries = 1
	away := &outage{Groups: s.feed.Groups()}
	away.left.Store(5)
	o.Groups = away
	_, messages := s.subscribe(o, feed.All)
	for range 2 {
		m, _ := next(t, messages)
		m.Nack()
	}
	eventually(t, "it is parked in the end", func() bool {
		at := s.position("g", feed.All) // read first: the row is written before the checkpoint
		n := len(s.parked("g"))
		if at > 0 && n == 0 {
			t.Fatal("the checkpoint has moved, and nothing is parked")
		}
		return n == 1
	})
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 1 })
	if left := away.left.Load(); left >= 0 {
		t.Errorf("%d failures are left", left)
	}
}
