package worker

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// scale counts the bytes of events of intents that are read.
type scale struct {
	port.Store
	bytes *atomic.Int64
}

func (s scale) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range s.Store.ReadStream(ctx, stream, after) {
			if strings.HasPrefix(string(stream), intent.StreamPrefix) {
				s.bytes.Add(int64(len(r.Data)))
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// weighed returns an actor, and the bytes of events of intents that it has read.
func (w *world) weighed() (*actor, *atomic.Int64) {
	w.t.Helper()
	_, l := w.live(0, false)
	read := &atomic.Int64{}
	l.Relayer.Intents.Store = scale{l.Relayer.Intents.Store, read}
	a, err := w.opened(l)
	must(w.t, err)
	return a, read
}

func large(bytes int) func(*intent.Request) {
	return func(r *intent.Request) { r.Calls[0].Data = append(r.Calls[0].Data, make(intent.Data, bytes)...) }
}

func payingAtMost(wei uint64) func(*intent.Request) {
	return func(r *intent.Request) { r.Gas.MaxFee = intent.Amount(chain.PriceOf(wei)) }
}

// Intents whose ceiling is below the price of gas are not read while that is so, whether or
// not nodes would have to estimate them. They are carried out once gas is cheaper.
func TestBelowMarketIsNotRead(t *testing.T) {
	const many, bytes = 60, 90_000
	w := newWorld(t)
	a, read := w.weighed()
	var ids []chain.IntentID
	for n := range many {
		change := []func(*intent.Request){by("ann"), large(bytes), payingAtMost(1)}
		if n%3 == 1 {
			change = append(change, estimated)
		}
		if n%3 == 2 {
			change = append(change, func(r *intent.Request) { r.Order = "row" })
		}
		ids = append(ids, w.ask(w.request(n, change...))...)
	}
	for range 2 {
		must(t, w.turns(a, 1))
		w.block()
	}
	if n := read.Load(); n >= 1<<20 {
		t.Errorf("two turns read %d bytes of intents that may not pay the price of gas", n)
	}
	w.fee = chain.Fee{MaxFee: chain.PriceOf(1), MaxPriorityFee: chain.PriceOf(1)}
	done := w.ended(intent.StatusCompleted, ids...)
	for n := 0; !done(); n++ {
		if n == 200 {
			t.Fatal("not all are carried out when they can be")
		}
		must(t, w.turns(a, 1))
		w.block()
	}
	w.judge()
}

// silentMarket is a market whose price nodes do not tell.
type silentMarket struct {
	Fees
	asked *atomic.Int64 // times it was asked for an intent with a ceiling that has no nonce
}

func (m silentMarket) Offer(_ context.Context, t fee.Terms) (fee.Offer, error) {
	if t.Gas == 0 && !t.NoOp {
		m.asked.Add(1)
	}
	return fee.Offer{}, context.DeadlineExceeded
}

// While nodes do not tell the price of gas, a turn asks for it once to choose the intents that
// it reads, however many intents have a ceiling.
func TestSilentMarketIsAskedOnce(t *testing.T) {
	w := newWorld(t)
	_, l := w.live(0, false)
	asked := &atomic.Int64{}
	l.Relayer.Fees = silentMarket{w, asked}
	a, err := w.opened(l)
	must(t, err)
	var requests []intent.Request
	for n := range 12 {
		requests = append(requests, w.request(n, by("ann"), payingAtMost(100)))
	}
	w.ask(requests...)
	_ = w.turns(a, 1) // it returns the market's error
	if n := asked.Load(); n != 1 {
		t.Errorf("a turn asked %d times for the price of gas before it read intents", n)
	}
}

// An intent that may not pay the price of gas ends at its deadline, though it is not read
// before.
func TestBelowMarketExpires(t *testing.T) {
	w := newWorld(t)
	a, _ := w.weighed()
	deadline := w.chain.Head().Time + 3
	until := func(r *intent.Request) { r.Deadline = deadline }
	ids := w.ask(
		w.request(1, payingAtMost(1), until), w.request(2, payingAtMost(1), until, func(r *intent.Request) { r.Order = "row" }),
		w.request(3, until, func(r *intent.Request) { r.Order = "row" }), // behind it
	)
	for range 2 * int(w.settings.Claim/time.Second) {
		must(t, w.turns(a, 1))
		w.block()
	}
	for n, id := range ids {
		if s := w.intent(id); s.End == nil {
			t.Errorf("intent %d is %s after its deadline", n+1, s.Status())
		}
	}
	w.judge()
}

// Intents that are blocked for other reasons than their ceiling are read within a bound. Each
// has its turn nevertheless, and other clients' intents do not wait for them.
func TestBlockedIsReadWithinABound(t *testing.T) {
	const many, seconds = 60, 60
	w := newWorld(t)
	a, read := w.weighed()
	var requests []intent.Request
	for n := range many {
		r := w.request(n, by("ann"), large(intent.DataMax-2))
		w.reverts[r.ID()] = errors.New("insufficient funds for transfer")
		requests = append(requests, r)
	}
	requests = append(requests, w.request(many, by("ann"), large(intent.DataMax-2)), w.request(many+1, by("bob"), large(intent.DataMax-2)))
	ids := w.ask(requests...)
	anns, bobs := ids[many], ids[many+1]
	for second := range seconds {
		_ = w.turns(a, 1) // it returns the blocked intents' errors
		w.block()
		if second == 3 {
			w.is(bobs, intent.StatusCompleted)
		}
	}
	w.is(anns, intent.StatusCompleted)
	most := (1 + seconds*int64(time.Second)/int64(w.settings.Claim)) * readMost
	if n := read.Load(); n > most+most/4 {
		t.Errorf("%d bytes were read within %d seconds, more than %d", n, seconds, most)
	}
	clear(w.reverts)
	done := w.ended(intent.StatusCompleted, ids...)
	for n := 0; !done(); n++ {
		if n == 200 {
			t.Fatal("not all are carried out when they can be")
		}
		_ = w.turns(a, 1)
		w.block()
	}
	w.judge()
}

// While nodes estimate an intent, it is not read again each time that its claim has lapsed.
func TestEstimatedIsReadOnce(t *testing.T) {
	w := newWorld(t)
	a, read := w.weighed()
	r := w.request(1, estimated, large(90_000))
	release := w.slowly(r)
	id := w.ask(r)[0]
	for range 3 * int(w.settings.Claim/time.Second) {
		must(t, w.turns(a, 1))
		w.block()
	}
	if n := read.Load(); n == 0 || n > 300_000 {
		t.Errorf("%d bytes are read while nodes estimate an intent of 180,000", n)
	}
	release()
	for i := 0; !w.ended(intent.StatusCompleted, id)(); i++ {
		if i == 200 {
			t.Fatal("it is not carried out")
		}
		must(t, w.turns(a, 1))
		w.block()
	}
	w.judge()
}

// A row of the queue from before it had a ceiling and a size: its intent is read first, and
// counts by the bytes that were read.
func TestRowsWithoutCeilings(t *testing.T) {
	w := newWorld(t)
	a, read := w.weighed()
	old := w.request(1, by("ann"), large(90_000), payingAtMost(1))
	w.ask(old)
	c := intent.Claimed{Waiting: old.Waiting(1)}
	c.MaxFee, c.Size = intent.Amount{}, 0
	must(t, a.prepare(t.Context(), []intent.Claimed{c}))
	if n := read.Load(); n < 90_000 || len(a.ready) != 0 {
		t.Errorf("%d bytes are read, %d intents are ready", n, len(a.ready))
	}
	if r := a.reading["ann"]; r == nil || r.vain != old.Size() {
		t.Errorf("the client's account is %+v", r)
	}
}
