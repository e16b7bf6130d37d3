package delivery

import (
	"context"
	"iter"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// countedLog counts the events that are read.
type countedLog struct {
	port.Store
	events atomic.Int64
}

func (l *countedLog) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.Store.ReadStream(ctx, s, after) {
			l.events.Add(1)
			if !yield(r, err) {
				return
			}
		}
	}
}

func (l *countedLog) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for b, err := range l.Store.ReadAll(ctx, after, f, most) {
			l.events.Add(int64(len(b.Events)))
			if !yield(b, err) {
				return
			}
		}
	}
}

// A client that cannot pay for the events of its group is refused before one is read.
func TestRepeatedCancelIsChargedBeforeTheGroupIsRead(t *testing.T) {
	const members, burst = 400, 100
	keys := newRing(t)
	c := newCancelStack(t)
	keys.config(&c.config)
	c.config.Rates.Key = rest.Rate{PerSecond: 1, Burst: burst}
	token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Cancel}, Client: "shop"})
	log := &countedLog{Store: c.db.Log()}
	c.Canceler.Store, c.Canceler.Groups.Store = log, log
	c.Canceler.CatchUp = (&grouping.Grouper{
		Store: log, Checkpoints: c.db.Work(), Transactions: c.Canceler.Transactions, Groups: c.Canceler.Groups, Now: c.now, Log: c.config.Log,
	}).CatchUp
	c.restart()
	for n := len(c.hashes); n < members; n++ {
		c.member(testChain, c.sender, c.key, uint64(n))
	}
	body := c.typed(testChain, uint64(testTime.Unix())+3600)
	ask := func() response { return c.do(http.MethodPost, c.path(""), body, "X-API-Key", token) }
	first := ask()
	if first.status != http.StatusOK || left(t, first) != 0 {
		t.Fatalf("answered %v", first)
	}
	c.elapse(3 * time.Second) // enough for a request of its own
	before := log.events.Load()
	again := ask()
	wantProblem(t, "a repeated cancel", again, http.StatusTooManyRequests, rest.ErrRateLimited)
	if n := log.events.Load() - before; n > 0 {
		t.Errorf("%d events were read for a client that could not pay", n)
	}
	if again.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	c.elapse(burst * time.Second)
	if res := ask(); res.status != http.StatusOK || left(t, res) != burst-members/rowsUnit {
		t.Errorf("a client that can pay: answered %d, %d left", res.status, left(t, res))
	}
}

// heldLog is a log whose reads of streams wait until the test lets them go on.
type heldLog struct {
	port.Store
	entered chan struct{}
	proceed chan struct{}
}

func (l *heldLog) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		l.entered <- struct{}{}
		select {
		case <-l.proceed:
			l.Store.ReadStream(ctx, s, after)(yield)
		case <-ctx.Done():
			yield(eventlog.Recorded{}, ctx.Err())
		}
	}
}

// Of one client's cancels three read their groups at once, however many there are.
func TestCancelsTakePlaces(t *testing.T) {
	resttest.TakeTurns(t, NewCancels, rest.HolderOf, cancelPlaces, cancelShare, 0)
	const all = 64
	c := newCancelStack(t)
	body := c.typed(testChain, uint64(testTime.Unix())+3600)
	if res := c.do(http.MethodPost, c.path(""), body); res.status != http.StatusOK {
		t.Fatal(res)
	}
	log := &heldLog{c.db.Log(), make(chan struct{}, 2*all), make(chan struct{})}
	places := NewCancels()
	c.config.Cancels, c.Canceler.Groups.Store = places, log
	c.restart()
	answers := make(chan response, all)
	for range all {
		go func() {
			res, _ := c.send(http.MethodPost, c.path(""), body)
			answers <- res
		}()
	}
	deadline := time.After(patience)
	loading := 0
	for waiting := 0; loading <= cancelShare && (loading < cancelShare || waiting < all-cancelShare); _, waiting = places.Load() {
		select {
		case <-log.entered:
			loading++
		case <-deadline:
			t.Fatalf("%d cancels read their group, %d wait", loading, waiting)
		default:
			runtime.Gosched()
		}
	}
	if loading > cancelShare {
		t.Errorf("%d of one client's cancels read their group at once, want at most %d", loading, cancelShare)
	}
	close(log.proceed)
	for range all {
		if res := <-answers; res.status != http.StatusOK {
			t.Error(res)
		}
	}
	if free, waiting := places.Load(); free != cancelPlaces || waiting != 0 {
		t.Errorf("%d places are free afterwards, %d cancels wait", free, waiting)
	}
}
