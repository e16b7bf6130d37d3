package resttest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
)

// patience is how long a test waits for an expected event.
const patience = 10 * time.Second

// TakeTurns tests places of which two clients can have all. At most line reads of one client
// wait; 0: any number. of makes the holder of a client from its name.
func TakeTurns[H comparable](t *testing.T, places func() *commands.Places[H], of func(client string) H, all, share, line int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, flood, other := places(), of("flood"), of("other")
		ctx, stop := context.WithCancel(t.Context())
		entered := map[H]chan func(){flood: make(chan func(), 64), other: make(chan func(), 64)}
		enter := func(of H, times int) {
			for range times {
				go func() {
					if leave, err := l.Enter(ctx, of); err == nil {
						entered[of] <- leave
					}
				}()
			}
			synctest.Wait()
		}
		expect := func(flooding, others int) {
			t.Helper()
			if f, o := len(entered[flood]), len(entered[other]); f != flooding || o != others {
				t.Fatalf("the flood has %d places and the other client %d, want %d and %d", f, o, flooding, others)
			}
		}
		enter(flood, share+max(line, 20))
		expect(share, 0)
		if line > 0 {
			if _, err := l.Enter(ctx, flood); !errors.Is(err, commands.ErrTooManyWait) {
				t.Fatalf("more than %d reads of one client wait: %v", line, err)
			}
		}
		enter(other, share+1)
		expect(share, share)
		(<-entered[flood])() // its next one gets the place, for the other has its share
		synctest.Wait()
		expect(share, share)
		(<-entered[other])()
		synctest.Wait()
		expect(share, share)
		stop() // nobody waits any longer
		synctest.Wait()
		for _, places := range entered {
			for len(places) > 0 {
				(<-places)()
			}
		}
		AllFree(t, l, of, all)
	})
}

// AllFree tests that all places are free.
func AllFree[H comparable](t *testing.T, p *commands.Places[H], of func(client string) H, all int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for i := range all {
		leave, err := p.Enter(ctx, of("client "+string(rune('a'+i))))
		if err != nil {
			t.Fatalf("%d of %d places are free: %v", i, all, err)
		}
		defer leave()
	}
}
