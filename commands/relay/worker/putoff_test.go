package worker

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Blocked intents delay no others, however many they are. Blocked are intents whose gas
// nodes do not know, intents that may not pay its price, and intents that may not be signed
// now. Once unblocked they complete.
func TestPutOff(t *testing.T) {
	const many = 12 // of the room that there is in the lane
	inRow := func(n int) func(*intent.Request) {
		return func(r *intent.Request) { r.Order = fmt.Sprintf("row-%d", n) }
	}
	poor := func(r *intent.Request) { r.Gas.MaxFee = intent.Amount(chain.PriceOf(1)) }
	for name, c := range map[string]struct {
		change             func(n int) []func(*intent.Request)
		unclear, forbidden bool
	}{
		"no gas is known":             {func(int) []func(*intent.Request) { return nil }, true, false},
		"no gas is known, in rows":    {func(n int) []func(*intent.Request) { return []func(*intent.Request){inRow(n)} }, true, false},
		"gas costs too much, in rows": {func(n int) []func(*intent.Request) { return []func(*intent.Request){inRow(n), poor} }, false, false},
		"gas costs too much":          {func(int) []func(*intent.Request) { return []func(*intent.Request){poor} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings.Budget = 2
			a := w.worker()
			a.News.tellPart(a.News.open(), part{true, chain.Address{1}, w.lane.Key, false, []string{"hot"}, signer.Share{InFlight: 2}})
			var ids []chain.IntentID
			for n := range many * w.settings.Budget {
				r := w.request(n, c.change(n)...)
				if c.unclear {
					w.reverts[r.ID()] = errors.New("insufficient funds for transfer")
				}
				ids = append(ids, w.ask(r)...)
			}
			last := w.ask(w.request(1000))[0]
			for range 60 {
				_ = w.turns(a, 1) // it returns the blocked intents' errors
				w.block()
			}
			if s := w.intent(last); s.Status() != intent.StatusCompleted {
				t.Fatalf("another intent is %s", s.Status())
			}
			clear(w.reverts)
			w.fee = chain.Fee{MaxFee: chain.PriceOf(1), MaxPriorityFee: chain.PriceOf(1)}
			for range 60 {
				_ = w.turns(a, 1)
				w.block()
			}
			if !w.ended(intent.StatusCompleted, ids...)() {
				t.Error("they are not carried out when they can be")
			}
			w.judge()
		})
	}
}

// Blocked intents delay no others either if there are more than are claimed before their
// first claims lapse, wherever the others stand.
func TestPutOffByMany(t *testing.T) {
	for name, row := range map[string]func(n int) string{
		"alone":   func(int) string { return "" },
		"in rows": func(n int) string { return fmt.Sprintf("row-%d", n) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings.Budget, w.settings.Claim = 2, w.settings.Poll
			a := w.worker()
			var requests []intent.Request
			for n := range claimMax + 100 {
				if n == claimMax+50 {
					requests = append(requests, w.request(5000))
				}
				requests = append(requests, w.request(n, func(r *intent.Request) { r.Order, r.Gas.MaxFee = row(n), intent.Amount(chain.PriceOf(1)) }))
			}
			requests = append(requests, w.request(5001), w.request(5002), w.request(5003))
			ids := w.ask(requests...)
			others := append(ids[len(ids)-3:], requests[claimMax+50].ID())
			done := w.ended(intent.StatusCompleted, others...)
			for n := 0; n < 60 && !done(); n++ {
				_ = w.turns(a, 1) // it returns the blocked intents' errors
				w.block()
			}
			if !done() {
				t.Error("others wait")
			}
			w.fee = chain.Fee{MaxFee: chain.PriceOf(1), MaxPriorityFee: chain.PriceOf(1)}
			for n := 0; n < 20 && w.intent(ids[0]).Status() != intent.StatusCompleted; n++ {
				w.block()
				must(t, w.turns(a, 1))
			}
			if s := w.intent(ids[0]).Status(); s != intent.StatusCompleted {
				t.Errorf("the first one is %s when it can be carried out", s)
			}
			w.judge()
		})
	}
}
