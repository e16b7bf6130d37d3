package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

const (
	benchStreams = 2000
	benchEach    = 100
	benchEvents  = benchStreams * benchEach
)

// body is the part of an event that every consumer here reads.
type body struct{ N int }

// BenchmarkConsume reads an embedded log of 200,000 events to its end: by a plain loop over the
// store, by the subscriber's channel, and by Watermill's router without and with the usual
// middlewares. Each reads the event's JSON. The ratio is relative to the plain loop.
//
//	go test -run '^$' -bench Consume -benchtime 3x ./infra/feed
func BenchmarkConsume(b *testing.B) {
	s := newStage(b)
	for i := range benchStreams {
		s.happened(eventlog.Stream(fmt.Sprintf("tx-42431-0x%060x", i)), 0, benchEach)
	}
	var plain float64
	groups := 0
	run := func(name string, consume func(b *testing.B, group string)) {
		b.Run(name, func(b *testing.B) {
			began := time.Now()
			for range b.N {
				groups++ // each run starts at the beginning
				consume(b, fmt.Sprintf("%s-%d", name, groups))
			}
			rate := float64(b.N) * benchEvents / time.Since(began).Seconds()
			if name == "loop" {
				plain = rate
			}
			b.ReportMetric(rate, "events/s")
			b.ReportMetric(rate/plain, "of-loop")
		})
	}
	run("loop", func(b *testing.B, _ string) {
		n := 0
		for batch, err := range s.db.Log().ReadAll(context.Background(), 0, eventlog.Filter{}, 1000) {
			must(b, err)
			for _, e := range batch.Events {
				var v body
				must(b, json.Unmarshal(e.Data, &v))
				n++
			}
		}
		if n != benchEvents {
			b.Fatal(n)
		}
	})
	run("channel", s.benchChannel)
	run("router", func(b *testing.B, group string) { s.benchRouter(b, group) })
	run("router+middlewares", func(b *testing.B, group string) {
		s.benchRouter(b, group, feed.Causes, middleware.Recoverer, middleware.CorrelationID,
			middleware.Retry{MaxRetries: 3, InitialInterval: time.Millisecond}.Middleware)
	})
}

func (s *stage) benchOptions(group string) feed.Options {
	return feed.Options{Log: s.db.Log(), Groups: s.feed.Groups(), Group: group}
}

func (s *stage) benchChannel(b *testing.B, group string) {
	sub, messages := s.subscribe(s.benchOptions(group), feed.All)
	for range benchEvents {
		m := <-messages
		var v body
		must(b, json.Unmarshal(m.Payload, &v))
		m.Ack()
	}
	must(b, sub.Close())
}

func (s *stage) benchRouter(b *testing.B, group string, with ...message.HandlerMiddleware) {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	must(b, err)
	router.AddMiddleware(with...)
	var handled atomic.Int64
	all := make(chan struct{})
	router.AddNoPublisherHandler("bench", feed.All, s.subscriber(s.benchOptions(group)), func(m *message.Message) error {
		var v body
		if err := json.Unmarshal(m.Payload, &v); err != nil {
			return err
		}
		if handled.Add(1) == benchEvents {
			close(all)
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.Background()) }()
	<-all
	must(b, router.Close())
	must(b, <-ended)
}
