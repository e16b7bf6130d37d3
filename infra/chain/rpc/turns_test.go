package rpc

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One client's slow estimates take no place and no turn from another client's estimates.
func TestTrialsTakeTurns(t *testing.T) {
	p := placesOf(64)
	leave := fill(t, p, waiter{use: trying, client: "mallory"})
	if p.held[trying] != 42 {
		t.Fatalf("a client alone has %d places, want 42", p.held[trying])
	}
	if bobs := of(trying, "bob"); !p.take(t.Context(), bobs, passed()) {
		t.Error("another's first trial waits for slow ones")
	}
	leave()
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 1, Burst: 1}, time.Now())
		if _, err := m.take(time.Now(), &waiter{use: broadcast, n: 1}, 0); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 10)
		enter := func(use purpose, client string) {
			go func() {
				if leave, err := m.enter(t.Context(), time.Now, waiter{use: use, client: client, n: 1}, time.Minute); err == nil {
					leave()
				}
				got <- client
			}()
			synctest.Wait()
		}
		for range 3 {
			enter(trying, "mallory")
		}
		enter(read, "us")
		enter(trying, "bob")
		var order []string
		for range 5 {
			order = append(order, <-got)
		}
		if at := slices.Index(order, "bob"); at < 0 || at > 2 {
			t.Errorf("they went in this order: %v", order)
		}
	})
}

// One client's estimates leave as many calls of the day for other clients as it has used.
// All estimates leave a third of the day for broadcasts and reads.
func TestTrialsLeaveTheDay(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := newMeter("a", Budget{Daily: 1000}, now)
	for client, want := range map[string]int{"mallory": 325} {
		made := 0
		for range 2000 {
			if _, err := m.take(now, of(trying, client), 0); err == nil {
				made++
			}
		}
		if made != want {
			t.Errorf("%s has had %d tried, want %d", client, made, want)
		}
	}
	if _, err := m.take(now, of(trying, "bob"), 0); err != nil {
		t.Errorf("another's: %v", err)
	}
}

// Large replies to the relay's own calls do not wait for large replies to clients.
func TestClientsLargeRepliesHoldOnlyClients(t *testing.T) {
	c := newClient("a", &url.URL{Scheme: "http", Host: "a"}, nil, 1, nil)
	c.theirs <- struct{}{} // one is being read
	body := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("0", 2*maxSmallReply) + `"}`
	if _, err := c.read(t.Context(), strings.NewReader(body), int64(len(body)), 1<<30); err != nil {
		t.Errorf("ours: %v", err)
	}
	<-c.theirs
	c.large <- struct{}{} // nor do clients' replies wait for ours
	ctx, cancel := context.WithTimeout(ofClient(t.Context(), "mallory"), 5*time.Second)
	defer cancel()
	if _, err := c.read(ctx, strings.NewReader(body), int64(len(body)), 1<<30); err != nil {
		t.Errorf("a client's: %v", err)
	}
	c.theirs <- struct{}{}
	cancel()
	if _, err := c.read(ctx, strings.NewReader(body), int64(len(body)), 1<<30); !errors.Is(err, context.Canceled) {
		t.Errorf("another of a client's was read at once: %v", err)
	}
}

// Trials go after reads: however many of them wait, a read waits for at most the time of two calls.
// Reads that come without end leave trials every fourth call, and trials leave that to repeats.
func TestTrialsGoAfterReads(t *testing.T) {
	const rate = 25
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: rate, Concurrency: 1000}, time.Now())
		stop := crowdOf(t, m, 300, waiter{use: trying, client: "mallory", n: 1})
		defer stop()
		time.Sleep(5 * time.Second)
		for range 100 {
			began := time.Now()
			leave, err := m.enter(t.Context(), time.Now, waiter{use: read, n: 1}, 4*time.Second)
			if took := time.Since(began); err != nil || took > 2*time.Second/rate+time.Microsecond {
				t.Fatalf("a read after %s, %v", took, err)
			}
			leave()
			time.Sleep(100 * time.Millisecond)
		}
	})
	for use := trying; use <= repeat; use++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMeter("a", Budget{Rate: rate, Concurrency: 1000}, time.Now())
			stop := crowdOf(t, m, 100, waiter{use: use - 1, client: "mallory", n: 1})
			defer stop()
			time.Sleep(5 * time.Second)
			began, made := time.Now(), 0
			for time.Since(began) < 20*time.Second {
				leave, err := m.enter(t.Context(), time.Now, waiter{use: use, client: "alice", n: 1}, 2*time.Second)
				if err != nil {
					t.Fatalf("call %d after %s: %v", made, time.Since(began), err)
				}
				leave()
				made++
			}
			if want := 20 * rate / (overtakesMax + 1); made < want-20 || made > want+10 {
				t.Errorf("%d calls of purpose %d in 20 s, want %d", made, use, want)
			}
		})
	}
}

// One client has a bounded number of trials under way. Another client's goes on at once.
func TestTrialsOfAClientAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all trials
		ctx, cancel := context.WithCancel(t.Context())
		var leaves []func()
		for range trialsMax {
			leave, err := all.enter(ctx, "mallory")
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		entered := make(chan error, 2)
		for range cap(entered) {
			go func() {
				leave, err := all.enter(ctx, "mallory")
				if err == nil {
					leave()
				}
				entered <- err
			}()
		}
		synctest.Wait()
		if len(entered) > 0 {
			t.Error("one more is under way")
		}
		leave, err := all.enter(t.Context(), "bob")
		if err != nil {
			t.Errorf("another client's: %v", err)
		}
		leave()
		leaves[0]()
		for range cap(entered) {
			if err := <-entered; err != nil {
				t.Errorf("after one of them: %v", err)
			}
		}
		cancel()
		if leave, err := all.enter(ctx, "mallory"); err == nil {
			leave() // either may come first
		}
		for _, leave := range leaves[1:] {
			leave()
		}
		if len(all.clients) > 0 {
			t.Errorf("%d clients are remembered", len(all.clients))
		}
	})
}
