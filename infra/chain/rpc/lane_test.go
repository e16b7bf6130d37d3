package rpc

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// A client's own transactions are refused with a long pause. Transactions that the relay has signed
// for the client are sent all the same, first attempts and repeats: other clients' wait behind them.
// If a node refuses one of these, it stops neither the next one nor the client's own transactions.
func TestPausesStopNoLane(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	raw, hash := plain(alice, key5, 0)
	for _, again := range []bool{false, true} {
		own := tx.Sending{Client: "mallory", Repeat: again}
		lane := tx.Sending{Client: "mallory", Repeat: again, Lane: true}
		g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
		clock := newTimer()
		p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
		send := func(of tx.Sending) tx.Answer { return p.Send(t.Context(), raw, hash, 1, of)[0] }
		taken := func(a tx.Answer) bool { return a.Class == tx.Taken || a.Class == tx.Known }
		before := sharedOf(p)
		g.misbehave("eth_sendRawTransaction", busy)
		if got := send(lane); got.Cause != tx.RateLimited {
			t.Errorf("the relay's, refused: %+v", got)
		}
		g.misbehave("", nil)
		if got := send(own); !taken(got) {
			t.Errorf("the client's own, after a refusal of the relay's: %+v", got)
		}
		g.misbehave("eth_sendRawTransaction", busy)
		if got := send(own); got.Cause != tx.RateLimited {
			t.Errorf("the client's own, refused: %+v", got)
		}
		g.misbehave("", nil)
		if got := send(own); taken(got) {
			t.Error("the client's own is sent in its pause")
		}
		if got := send(lane); !taken(got) {
			t.Errorf("the relay's, in the client's pause: %+v", got)
		}
		if after := sharedOf(p); len(after) != len(before) || after[0].pace != before[0].pace || after[0].all != before[0].all || after[0].state != before[0].state {
			t.Errorf("shared: %+v, before %+v", after, before)
		}
	}
}

// A client has used up its share of an endpoint's calls of the day. What the relay signs for it is
// sent, and counts among the client's calls. The calls kept for reads are left.
func TestSharesStopNoLane(t *testing.T) {
	const daily = 100
	clock := newTimer()
	m := newMeter("a", Budget{Daily: daily}, clock.now())
	take := func(w waiter) error {
		_, err := m.take(clock.now(), &w, 0)
		return err
	}
	own := waiter{use: broadcast, client: "mallory", n: 1}
	lane := waiter{use: broadcast, client: "mallory", n: 1, lane: true}
	for take(own) == nil {
	}
	if err := take(lane); err != nil {
		t.Errorf("the relay's: %v", err)
	}
	if m.passed["mallory"] != m.spent {
		t.Errorf("%d calls are the client's of %d", m.passed["mallory"], m.spent)
	}
	if err := take(waiter{use: broadcast, client: "bob", n: 1}); err != nil {
		t.Errorf("another client's: %v", err)
	}
	for take(lane) == nil {
	}
	for n := range int(reserved * daily) {
		if err := take(waiter{use: read, n: 1}); err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
	}
}

// Many of a client's own transactions wait for an endpoint's rate. One that the relay has signed for
// the client goes after one of them, and not after all.
func TestLanesHaveTurnsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 5, Burst: 1}, time.Now())
		if _, err := m.take(time.Now(), &waiter{use: broadcast, n: 1}, 0); err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 10)
		wait := func(name string, w waiter) {
			go func() {
				if _, err := m.enter(t.Context(), time.Now, w, time.Minute); err == nil {
					order <- name
				}
			}()
			synctest.Wait()
		}
		for range 8 {
			wait("own", waiter{use: broadcast, client: "mallory", n: 1})
		}
		wait("lane", waiter{use: broadcast, client: "mallory", n: 1, lane: true})
		for n := range 3 {
			if <-order == "lane" {
				return
			}
			if n == 2 {
				t.Error("three of the client's own went before")
			}
		}
	})
}
