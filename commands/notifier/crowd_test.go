package notifier_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A client with very many endpoints that answer too late, or never, delays no delivery of
// another client: it never takes some of the worker's slots.
func TestSlowEndpointsOfAnotherClientDelayNothing(t *testing.T) {
	as := func(client string, keys ...notice.Key) (news []notice.News) {
		for _, k := range keys {
			news = append(news, notice.News{Key: k, Client: client, URL: "https://example.org/" + canary, Body: []byte(canary)})
		}
		return news
	}
	inWorld(t, asIs, func(t *testing.T, w *world) {
		var crowd []notice.Key
		for endpoint := byte(1); endpoint <= 100; endpoint++ {
			w.set(endpoint, timeout)
			for intent := range byte(4) {
				crowd = append(crowd, key(endpoint, intent, 1))
			}
		}
		check(t, w.queue.Enqueue(t.Context(), "notifier", 0, 1, as("crowd", crowd...)))
		w.at = 1
		w.wake()
		time.Sleep(time.Minute) // retries come due in it, too
		for intent := range byte(10) {
			began := time.Now()
			k := key(200, intent, 1)
			check(t, w.queue.Enqueue(t.Context(), "notifier", w.at, w.at+1, as("victim", k)))
			w.at++
			w.wake()
			synctest.Wait()
			w.want(k, notice.Settled)
			if took := time.Since(began); took != 0 {
				t.Errorf("a notice waits for %s", took)
			}
			time.Sleep(7 * time.Second)
		}
		sent := 0
		for endpoint := byte(1); endpoint <= 100; endpoint++ {
			sent += len(w.to(endpoint))
		}
		if perSlot := sent / 6; perSlot < 6 { // of two minutes and ten seconds, by fifteen seconds
			t.Errorf("the crowd's are %d attempts", sent)
		}
	})
}

// held is a queue whose third sweep waits.
type held struct {
	*embedded.Notices
	sweeps  atomic.Int32
	most    atomic.Int64
	waits   chan struct{}
	release chan struct{}
}

func (h *held) Sweep(ctx context.Context, turn string, most int) (string, bool, error) {
	h.most.Store(max(h.most.Load(), int64(most)))
	if h.sweeps.Add(1) == 3 {
		close(h.waits)
		<-h.release
	}
	return h.Notices.Sweep(ctx, turn, most)
}

// A client disables an endpoint with very many waiting deliveries, or requests them all
// again. That delays the feeder for other clients by no more than one batch.
func TestVeryManyNoticesHoldUpNobody(t *testing.T) {
	const many = 1700
	w := newTelling(t, local(), nil)
	crowd := notice.EndpointOf("crowd", "https://example.org/")
	var news []notice.News
	for i := range many {
		k := notice.Key{Endpoint: crowd, Intent: chain.IntentID{byte(i), byte(i >> 8)}, Seq: 1}
		news = append(news, notice.News{Key: k, Client: "crowd", URL: "https://example.org/", Body: []byte("{}")})
	}
	check(t, w.rows.Enqueue(w.ctx, "fill", 0, 1, news))
	victim := w.newHook(nil)
	var ids []chain.IntentID
	for i, command := range []func(context.Context, notice.EndpointID, eventlog.Meta) error{
		w.operator().Disable,
		func(ctx context.Context, id notice.EndpointID, meta eventlog.Meta) error {
			check(t, w.operator().Enable(ctx, id, meta))
			w.runs(&held{Notices: w.rows, waits: make(chan struct{}), release: make(chan struct{})}, func(*held) {
				w.until("enabled", func() bool {
					e, _, err := w.rows.Endpoint(ctx, id)
					check(t, err)
					return e.Disabled == notice.Enabled
				})
			})
			return w.operator().Redeliver(ctx, id, nil, meta)
		},
	} {
		check(t, command(w.ctx, crowd, eventlog.Meta{Actor: "crowd"}))
		rows := &held{Notices: w.rows, waits: make(chan struct{}), release: make(chan struct{})}
		w.runs(rows, func(rows *held) {
			<-rows.waits
			ids = append(ids, w.ask(fmt.Sprint(i), victim.url))
			w.live(ids[i], i+1)
			w.until("the other client's notices are queued", func() bool {
				n, err := w.rows.Count(w.ctx, w.endpoint(victim.url), notice.Queued, many)
				check(t, err)
				return n == (i+1)*lifeNotices
			})
			close(rows.release)
			stage := []notice.Stage{notice.Dead, notice.Queued}[i]
			w.until("all are "+string(stage), func() bool {
				n, err := w.rows.Count(w.ctx, crowd, stage, many+1)
				check(t, err)
				return n == many
			})
		})
		if most := rows.most.Load(); most > many/3 {
			t.Errorf("%d in one go", most)
		}
	}
	w.start(w.worker("a", w.rows))
	victim.waits(2 * lifeNotices)
	w.judge(victim, ids...)
}

// runs runs a feeder during a function.
func (w *telling) runs(rows *held, during func(*held)) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	feeder := w.feeder()
	feeder.Rows = rows
	ended := make(chan error, 1)
	go func() { ended <- feeder.Run(ctx) }()
	during(rows)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
}
