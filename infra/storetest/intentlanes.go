package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Lanes share a queue that is still being filled. No intent is claimed by two lanes, and each
// ordering group's intents come in order and in one lane at a time.
func intentLanes(t *testing.T, q *intentQueue) {
	const rows, each, lanes = 3, 30, 4
	const all = rows * each * 2 // half of them in no ordering group
	ctx := soon(t)
	var mu sync.Mutex
	met := map[chain.IntentID]int{}
	in := map[intent.Row]int{}                 // number of open intents, by ordering group
	of := map[intent.Row]int{}                 // the lane of each group
	last := map[intent.Row]eventlog.Position{} // the position of its last intent
	done := make(chan []intent.Change, all)
	begin := func(n int, claimed []intent.Claimed) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range claimed {
			if before, twice := met[c.ID]; twice {
				t.Errorf("%d is claimed by %d and %d", c.Position, before, n)
			}
			met[c.ID] = n
			if c.Row.Order == "" {
				continue
			}
			if in[c.Row] > 0 && of[c.Row] != n {
				t.Errorf("row %s is in lanes %d and %d", c.Row.Name(), of[c.Row], n)
			}
			if c.Position < last[c.Row] {
				t.Errorf("%d comes after %d", c.Position, last[c.Row])
			}
			in[c.Row], of[c.Row], last[c.Row] = in[c.Row]+1, n, c.Position
		}
	}
	var working sync.WaitGroup
	for n := range lanes {
		working.Go(func() {
			c := laneClaim(n%len(signers), byte(n/len(signers)), 3)
			for ctx.Err() == nil {
				claimed, err := q.Claim(ctx, c)
				if err != nil {
					t.Error(err)
					return
				}
				begin(n, claimed)
				mu.Lock()
				var changes []intent.Change
				for _, w := range claimed {
					in[w.Row]-- // before the queue is updated: another lane may get the next at once
					changes = append(changes, intent.Change{ID: w.ID, Close: true})
				}
				over := len(met) == all
				mu.Unlock()
				if len(changes) > 0 {
					done <- changes
				}
				if over {
					return
				}
			}
		})
	}
	for n := 1; n <= all; n++ {
		w := intentOf(n)
		if n%2 == 0 {
			inRow("c", fmt.Sprint(n%rows))(&w)
		}
		changes := asks(w)
		for more := true; more; {
			select {
			case ended := <-done:
				changes = append(changes, ended...)
			default:
				more = false
			}
		}
		q.apply(changes...)
	}
	over := make(chan struct{})
	go func() { working.Wait(); close(over) }()
	for ended := false; !ended; {
		select {
		case changes := <-done:
			q.apply(changes...)
		case <-over:
			ended = true
		}
	}
	if len(met) != all {
		t.Errorf("%d of %d were claimed", len(met), all)
	}
}
