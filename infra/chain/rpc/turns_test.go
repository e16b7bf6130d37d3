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
