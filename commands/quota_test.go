package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// counter is a fake count of clients' use of the queue.
type counter struct {
	mu     sync.Mutex
	usage  map[string]tx.Usage
	folded eventlog.Position
	asked  int
	err    error
}

func (c *counter) count(_ context.Context, client string) (tx.Usage, eventlog.Position, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.usage[client], c.folded, c.err
}

// bounded returns a desk whose clients have quotas, and a clock that a test moves.
func bounded(t *testing.T, limit tx.Usage) (desk, *counter, *time.Duration) {
	d := newDesk(t)
	c, since := &counter{usage: map[string]tx.Usage{}}, new(time.Duration)
	d.Quota = &commands.Quota{Limit: limit, Count: c.count, Now: func() time.Time { return now.Add(*since) }}
	return d, c, since
}

// from submits transactions of one client.
func (d desk) from(t *testing.T, client string, raws ...[]byte) (answers []commands.Submission) {
	t.Helper()
	answers, err := d.Batch(t.Context(), moderato, raws, commands.From(client), eventlog.Meta{})
	check(t, err)
	return answers
}

func raw(n uint64) []byte { b, _ := plain(n); return b }

const lots = 1 << 40

// A client that submits transactions for a year ahead stops at its quota, item by item of a
// batch. Other clients are not affected, and accepted transactions are always answered.
func TestFloodEndsAtTheQuota(t *testing.T) {
	d, c, since := bounded(t, tx.Usage{Transactions: 5, Bytes: lots})
	var raws [][]byte
	for n := range uint64(8) {
		raws = append(raws, raw(n))
	}
	answers := d.from(t, "mallory", raws...)
	for i, a := range answers {
		if refused := errors.Is(a.Err, access.ErrQuotaExceeded); refused != (i >= 5) {
			t.Errorf("item %d: %v", i, a.Err)
		}
	}
	if text := fmt.Sprint(answers[5].Err); !strings.Contains(text, "has 5 transactions") || !strings.Contains(text, "quota.transactions allows 5") {
		t.Errorf("the refusal says %q", text)
	}
	check(t, d.from(t, "wallet", raw(100))[0].Err)
	again := d.from(t, "mallory", raws...)
	for i, a := range again {
		if a.Known != (i < 5) || (a.Err == nil) != (i < 5) {
			t.Errorf("repeated item %d: known %v, %v", i, a.Known, a.Err)
		}
	}
	if twice := d.from(t, "mallory", raw(7), raw(7)); !errors.Is(twice[1].Err, access.ErrQuotaExceeded) || twice[1].Known {
		t.Errorf("the same refused bytes twice: %+v", twice[1])
	}
	// A transaction that ends frees its place once the queue has folded its acceptance.
	head, err := d.db.Log().Head(t.Context())
	check(t, err)
	c.mu.Lock()
	c.usage["mallory"], c.folded = tx.Usage{Transactions: 3}, head
	c.mu.Unlock()
	*since += time.Minute
	answers = d.from(t, "mallory", raws[5:]...)
	if answers[0].Err != nil || answers[1].Err != nil || answers[2].Err == nil {
		t.Errorf("with two places: %v, %v, %v", answers[0].Err, answers[1].Err, answers[2].Err)
	}
}

// Counted uses the singular for 1 only.
func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 intents", 1: "1 intent", 2: "2 intents"} {
		if got := commands.Counted(n, "intent"); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}

// A client with an exhausted quota still gets the state of its own transactions. A
// transaction known only from another client is refused like an unknown one.
func TestQuotaTellsNothingOfOthers(t *testing.T) {
	d, _, _ := bounded(t, tx.Usage{Transactions: 1, Bytes: lots})
	check(t, d.from(t, "wallet", raw(100))[0].Err)
	check(t, d.from(t, "mallory", raw(1))[0].Err)
	unknown, others := d.from(t, "mallory", raw(2))[0], d.from(t, "mallory", raw(100))[0]
	if fmt.Sprintf("%+v", others) != fmt.Sprintf("%+v", unknown) || !errors.Is(others.Err, access.ErrQuotaExceeded) {
		t.Errorf("another's bytes are answered by %+v, nobody's by %+v", others, unknown)
	}
	validated := func(client string, b []byte) commands.Submission {
		t.Helper()
		answers, err := d.Validate(t.Context(), moderato, [][]byte{b}, commands.From(client))
		check(t, err)
		return answers[0]
	}
	for _, b := range [][]byte{raw(2), raw(100)} {
		if a := validated("mallory", b); fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", unknown) {
			t.Errorf("validation answers %+v, a submission %+v", a, unknown)
		}
	}
	for client, own := range map[string][]byte{"mallory": raw(1), "wallet": raw(100)} {
		for _, again := range []commands.Submission{d.from(t, client, own)[0], validated(client, own)} {
			if !again.Known || again.Err != nil {
				t.Errorf("%s's own again: %+v", client, again)
			}
		}
	}
}

// Transactions that the relay signed for a client are accepted even if the client's quota
// is used up, because other clients' attempts follow them in the same lane.
func TestOwnAttemptsAreUnbounded(t *testing.T) {
	d, _, _ := bounded(t, tx.Usage{Transactions: 1, Bytes: lots})
	check(t, d.from(t, "mallory", raw(1))[0].Err)
	answers, err := d.Unbounded().Batch(t.Context(), moderato, [][]byte{raw(2), raw(3)}, commands.From("mallory"), eventlog.Meta{})
	check(t, err)
	for _, a := range answers {
		check(t, a.Err)
	}
	if a := d.from(t, "mallory", raw(4))[0]; !errors.Is(a.Err, access.ErrQuotaExceeded) {
		t.Errorf("a client's own, beyond its quota: %v", a.Err)
	}
}

// Bytes have a quota of their own.
func TestQuotaOfBytes(t *testing.T) {
	size := int64(len(raw(1)))
	d, _, _ := bounded(t, tx.Usage{Transactions: 100, Bytes: 2*size + size/2})
	answers := d.from(t, "mallory", raw(1), raw(2), raw(3))
	if answers[0].Err != nil || answers[1].Err != nil || !errors.Is(answers[2].Err, access.ErrQuotaExceeded) ||
		!strings.Contains(answers[2].Err.Error(), fmt.Sprintf("has %d bytes", 2*size)) {
		t.Errorf("answers: %+v", answers)
	}
}

// Concurrent requests get no more places than the quota allows, at any progress of the
// queue.
func TestBurstGetsNoMoreThanTheQuota(t *testing.T) {
	d, c, _ := bounded(t, tx.Usage{Transactions: 20, Bytes: lots})
	c.usage["mallory"] = tx.Usage{Transactions: 8}
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for n := range uint64(40) {
		all.Go(func() {
			answers, err := d.Batch(context.Background(), moderato, [][]byte{raw(n)}, commands.From("mallory"), eventlog.Meta{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && answers[0].Err == nil {
				taken++
			}
		})
	}
	all.Wait()
	if taken != 12 {
		t.Errorf("%d were accepted beside 8 that wait, the quota is 20", taken)
	}
}

// A refused or repeated transaction frees its place, and so does a transaction that could
// not be stored. Validation takes none.
func TestPlacesComeBack(t *testing.T) {
	d, c, since := bounded(t, tx.Usage{Transactions: 2, Bytes: lots})
	for range 3 {
		check(t, d.from(t, "a", raw(1))[0].Err)
		if answers, err := d.Validate(t.Context(), moderato, [][]byte{raw(2), raw(3)}, commands.From("a")); err != nil ||
			answers[0].Err != nil || !errors.Is(answers[1].Err, access.ErrQuotaExceeded) {
			t.Errorf("validation: %v, %+v", err, answers)
		}
	}
	*since += time.Hour
	c.err = errors.New("no database")
	if a := d.from(t, "a", raw(2))[0]; a.Err == nil || errors.Is(a.Err, access.ErrQuotaExceeded) {
		t.Errorf("without a count: %v", a.Err)
	}
	c.err = nil
	check(t, d.from(t, "a", raw(2))[0].Err)
}

// One count serves a second of submissions.
func TestQuotaCountsSeldom(t *testing.T) {
	d, c, since := bounded(t, tx.Usage{Transactions: 1000, Bytes: lots})
	for n := range uint64(50) {
		check(t, d.from(t, "a", raw(n))[0].Err)
		*since += 10 * time.Millisecond
	}
	if c.asked != 1 {
		t.Errorf("%d counts for 50 submissions in half a second", c.asked)
	}
}

// A transaction that is eligible later than the limit allows is refused, however that time
// is given. A transaction accepted before the limit was set is answered.
func TestTooFarAhead(t *testing.T) {
	d := newDesk(t)
	at := func(after uint64) []byte {
		b, _ := plain(after, func(s *chain.Signed) { s.Window.After = after })
		return b
	}
	expiring := func(before uint64) []byte {
		b, _ := plain(before, func(s *chain.Signed) { s.NonceKey, s.Nonce, s.Window.Before = chain.ExpiringKey, 0, before })
		return b
	}
	limit := uint64(now.Unix()) + 400*24*3600
	check(t, d.submit(t, at(limit+5))[0].Err)
	d.Ahead = 400 * 24 * time.Hour
	for name, c := range map[string]struct {
		raw []byte
		far bool
	}{
		"at the limit":                       {at(limit), false},
		"beyond it":                          {at(limit + 1), true},
		"never":                              {at(1<<64 - 1), true},
		"expiring, at the limit":             {expiring(limit + 30), false},
		"expiring, beyond it":                {expiring(limit + 31), true},
		"beyond it, but accepted in its day": {at(limit + 5), false},
	} {
		answers, err := d.Validate(t.Context(), moderato, [][]byte{c.raw}, commands.From(""))
		check(t, err)
		for how, a := range map[string]commands.Submission{"validated": answers[0], "submitted": d.submit(t, c.raw)[0]} {
			if errors.Is(a.Err, tx.ErrTooFarAhead) != c.far || c.far && !strings.Contains(a.Err.Error(), fmt.Sprint(limit)) {
				t.Errorf("%s, %s: %v", name, how, a.Err)
			}
		}
	}
}

// While the queue does not answer a client's first request, its other requests wait no
// longer than their own deadlines.
func TestWaitsForTheCountOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := make(chan struct{}, 2)
		q := &commands.Quota{Limit: tx.Usage{Transactions: 1, Bytes: 1}, Now: time.Now, Count: func(ctx context.Context, _ string) (tx.Usage, eventlog.Position, error) {
			asks <- struct{}{}
			<-ctx.Done()
			return tx.Usage{}, 0, ctx.Err()
		}}
		take := func(within time.Duration) chan error {
			done := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, err := q.Take(ctx, "client", 1)
				done <- err
			}()
			return done
		}
		began, first := time.Now(), take(time.Hour)
		<-asks
		if err := <-take(time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Bytes that another client has submitted take a place too: the transaction waits in the turn of each
// client that submits it.
func TestJoinsTakePlaces(t *testing.T) {
	d, c, since := bounded(t, tx.Usage{Transactions: 2, Bytes: lots})
	for n := range uint64(4) {
		check(t, d.from(t, fmt.Sprint("wallet ", n), raw(n))[0].Err)
	}
	for n := range uint64(3) {
		a := d.from(t, "mallory", raw(n))[0]
		if refused := errors.Is(a.Err, access.ErrQuotaExceeded); refused != (n == 2) {
			t.Errorf("submission %d: %v", n, a.Err)
		}
	}
	if a := d.from(t, "mallory", raw(0))[0]; !a.Known || a.Err != nil {
		t.Errorf("the client's own again: %+v", a)
	}
	head, err := d.db.Log().Head(t.Context())
	check(t, err)
	c.mu.Lock()
	c.usage["mallory"], c.folded = tx.Usage{Transactions: 1}, head
	c.mu.Unlock()
	*since += time.Minute
	if answers := d.from(t, "mallory", raw(2), raw(3)); answers[0].Err != nil || !errors.Is(answers[1].Err, access.ErrQuotaExceeded) {
		t.Errorf("with one place: %v, %v", answers[0].Err, answers[1].Err)
	}
}
