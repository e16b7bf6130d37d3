package feed_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func TestMessage(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 2)
	_, messages := s.consume("g")
	m, o := next(t, messages)
	if diff := cmp.Diff(feed.Origin{Stream: "tx-a", Version: 1, Position: 1, Name: "test.happened.v1"}, o); diff != "" {
		t.Error(diff)
	}
	if _, err := time.Parse(time.RFC3339Nano, m.Metadata.Get(feed.KeyAt)); err != nil {
		t.Error(err)
	}
	delete(m.Metadata, feed.KeyAt)
	want := message.Metadata{
		"name": "test.happened.v1", "stream": "tx-a", "version": "1", "position": "1", "partition_key": "tx-a", "actor": "test",
		"correlation": "02000000-0000-0000-0000-000000000000", "causation": "03000000-0000-0000-0000-000000000000", "trace": "00-1-2-01",
	}
	if diff := cmp.Diff(want, m.Metadata); diff != "" {
		t.Error(diff)
	}
	if id := eventlog.DeriveID("tx-a", eventlog.ID{1}, 1).String(); m.UUID != id || string(m.Payload) != `{"n":1}` {
		t.Errorf("%s %s, want %s", m.UUID, m.Payload, id)
	}
	select {
	case <-messages:
		t.Error("the next one came before the ack")
	case <-time.After(20 * time.Millisecond):
	}
	m.Ack()
	if _, o := next(t, messages); o.Version != 2 {
		t.Errorf("version %d is next", o.Version)
	}
	<-m.Context().Done() // the ack ended its context
}

// A consumer that acks in random order sees each stream in order and complete.
func TestOrderOfStreams(t *testing.T) {
	s := newStage(t)
	const streams, each = 40, 25
	for v := eventlog.Version(0); v < each; v += 5 {
		for i := range streams {
			s.happened(eventlog.Stream(fmt.Sprintf("tx-%d", i)), v, 5)
		}
	}
	_, messages := s.consume("g")
	last := map[eventlog.Stream]eventlog.Version{}
	var acks sync.WaitGroup
	for range streams * each {
		m, o := next(t, messages)
		if o.Version != last[o.Stream]+1 {
			t.Fatalf("%s: version %d after %d", o.Stream, o.Version, last[o.Stream])
		}
		last[o.Stream] = o.Version
		acks.Add(1)
		time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, func() { m.Ack(); acks.Done() })
	}
	acks.Wait()
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == streams*each })
}

func TestTopics(t *testing.T) {
	s := newStage(t)
	s.happened("tx-1-a", 0, 1)
	s.happened("group-1", 0, 1)
	for topic, want := range map[string][]eventlog.Stream{
		"stream:group-": {"group-1"}, "stream:none,tx-1": {"tx-1-a"}, "name:test.": {"group-1", "tx-1-a"},
	} {
		_, messages := s.subscribe(s.options("g"), topic)
		var got []eventlog.Stream // lanes are not ordered among each other
		for range want {
			m, o := next(t, messages)
			m.Ack()
			got = append(got, o.Stream)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", topic, got, want)
		}
	}
	eventually(t, "the checkpoint moves over what does not pass", func() bool { return s.position("g", "stream:none,tx-1") == 2 })
	sub := s.subscriber(s.options("h"))
	for _, topic := range []string{"", "tx-", "stream:", "names:x", "stream:a,,b"} {
		if _, err := sub.Subscribe(context.Background(), topic); err == nil {
			t.Errorf("topic %q was taken", topic)
		}
	}
}

// A group continues at its checkpoint; events that were not acked come again.
func TestGoesOn(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 3)
	sub, messages := s.consume("g")
	ack(t, messages)
	_, o := next(t, messages) // never acked, as if the consumer had died
	must(t, sub.Close())
	ended(t, messages)
	if at := s.position("g", feed.All); at != 1 || o.Version != 2 {
		t.Errorf("the checkpoint is %d", at)
	}
	_, messages = s.consume("g")
	if _, again := next(t, messages); again != o {
		t.Errorf("it goes on with %v", again)
	}
	_, messages = s.consume("another")
	if _, o := next(t, messages); o.Version != 1 {
		t.Errorf("another group begins with version %d", o.Version)
	}
}

// Messages in progress may still be acked while a subscriber closes.
func TestCloseWaitsForAcks(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 1)
	sub, messages := s.consume("g")
	m, _ := next(t, messages)
	go func() {
		<-m.Context().Done()
		m.Ack()
	}()
	must(t, sub.Close())
	must(t, sub.Close())
	ended(t, messages)
	if at := s.position("g", feed.All); at != 1 {
		t.Errorf("the checkpoint is %d", at)
	}
	if _, err := sub.Subscribe(context.Background(), feed.All); err == nil {
		t.Error("a closed subscriber took a topic")
	}
}

// One of two processes receives events; the other takes over.
func TestTakeover(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 1)
	first, one := s.consume("g")
	ack(t, one)
	_, other := s.consume("g")
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 1 })
	s.happened("tx-a", 1, 1)
	ack(t, one)
	must(t, first.Close())
	s.happened("tx-a", 2, 1)
	if _, o := next(t, other); o.Version != 3 {
		t.Errorf("the other begins with version %d", o.Version)
	}
}

// At most InFlight events are in progress, however many there are.
func TestBackPressure(t *testing.T) {
	s := newStage(t)
	for i := range 50 {
		s.happened(eventlog.Stream(fmt.Sprintf("tx-%d", i)), 0, 1)
	}
	o := s.options("g")
	o.InFlight, o.Lanes = 7, 50
	_, messages := s.subscribe(o, feed.All)
	var held []*message.Message
	for range 5 { // not all seven: two streams may share a lane
		m, _ := next(t, messages)
		held = append(held, m)
	}
	var more []*message.Message
	for waiting := true; waiting; {
		select {
		case m := <-messages:
			more = append(more, m)
		case <-time.After(50 * time.Millisecond):
			waiting = false
		}
	}
	if n := len(held) + len(more); n > 7 {
		t.Errorf("%d messages are under way", n)
	}
	var acked atomic.Int32
	for _, m := range append(held, more...) {
		m.Ack()
		acked.Add(1)
	}
	for acked.Load() < 50 {
		ack(t, messages)
		acked.Add(1)
	}
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 50 })
}

func TestFromEnd(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 3)
	o := s.options("g")
	o.FromEnd = true
	_, messages := s.subscribe(o, feed.All)
	eventually(t, "the checkpoint", func() bool { return s.position("g", feed.All) == 3 })
	s.happened("tx-a", 3, 1)
	if _, o := next(t, messages); o.Version != 4 {
		t.Errorf("it begins with version %d", o.Version)
	}
}

// Closing a store ends its subscriptions.
func TestStoreCloses(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 1)
	_, messages := s.consume("g")
	ack(t, messages)
	must(t, s.db.Close())
	ended(t, messages)
}

func TestOptions(t *testing.T) {
	s := newStage(t)
	for what, change := range map[string]func(*feed.Options){
		"no group": func(o *feed.Options) { o.Group = "" }, "no log": func(o *feed.Options) { o.Log = nil },
		"no groups": func(o *feed.Options) { o.Groups = nil }, "lanes": func(o *feed.Options) { o.Lanes = -1 },
	} {
		o := s.options("g")
		change(&o)
		if _, err := feed.New(o); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
