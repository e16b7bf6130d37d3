package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// storm is a random history: processes die and pause, the chain forks and stalls, others
// use the key, clients change their minds.
type storm struct {
	*world
	chance *rand.Rand
	ids    []chain.IntentID
	actor  *actor
	life   *life
	asleep []*actor // actors that believe they hold the lane
	prices bool     // gas prices move
	acts   bool     // operators act
	told   error    // error of the last turn
}

func (s *storm) takeOver() {
	s.t.Helper()
	left := 0
	if s.chance.IntN(2) == 0 {
		left = 1 + s.chance.IntN(40)
	}
	l, ln := s.live(left, s.chance.IntN(2) == 0)
	a, err := s.opened(ln)
	if err != nil && !l.gone() {
		s.t.Fatal(err)
	}
	s.life, s.actor = l, a
}

// step draws and runs the next step.
func (s *storm) step(trouble bool) {
	s.t.Helper()
	if s.prices && trouble && s.chance.IntN(6) == 0 {
		s.move()
	}
	if s.acts && trouble && s.chance.IntN(5) == 0 {
		s.act()
	}
	switch n := s.chance.IntN(20); {
	case n < 8:
		s.turn()
	case n < 13 || !trouble:
		s.block()
	case n < 14:
		s.askMore()
	case n < 15:
		s.changeMind()
	case n < 16 && s.chain.Head().Number > 3:
		if err := s.chain.Reorg(1, s.chance.IntN(2) == 0); err == nil {
			s.watch()
		}
	case n < 17:
		if _, err := s.chain.Mine(s.rival(s.chain.Nonce(s.lane))); err == nil {
			s.watch()
		}
	case n < 18:
		s.clock.pass(time.Duration(s.chance.IntN(40)) * time.Second)
	case n < 19:
		s.change()
	case s.actor != nil:
		s.asleep = append(s.asleep, s.actor)
		s.takeOver()
	}
}

// change changes a random setting of the world.
func (s *storm) change() {
	switch s.chance.IntN(6) {
	case 0:
		s.hold = !s.hold
	case 1:
		s.may = nil
		if s.chance.IntN(3) == 0 {
			s.may = errOff
		}
	case 2:
		s.away = nil
		if s.chance.IntN(3) == 0 {
			s.away = errAway
		}
	case 3: // gas becomes more or less expensive
		s.fee.MaxFee = chain.PriceOf(500 + uint64(s.chance.IntN(1500)))
	case 4: // all endpoints refuse a transaction for good
		if all := s.accepted(); len(all) > 0 {
			s.refuse(all[s.chance.IntN(len(all))].Accepted.Hash)
		}
	case 5: // an intent will revert
		if all := s.accepted(); len(all) > 0 {
			s.chain.Revert(all[s.chance.IntN(len(all))].Accepted.Hash, true)
		}
	}
}

var errOff, errAway = errors.New("switched off"), errors.New("no endpoint answers")

// turn runs a turn of the holder, or of a paused former holder.
func (s *storm) turn() {
	s.t.Helper()
	if n := len(s.asleep); n > 0 && s.chance.IntN(6) == 0 {
		old := s.asleep[n-1]
		s.asleep = s.asleep[:n-1]
		_ = s.turns(old, 1) // the judges check its effects
		return
	}
	if s.actor == nil || s.life.gone() {
		s.takeOver()
		return
	}
	err := s.turns(s.actor, 1)
	s.told = err
	switch {
	case err == nil || s.life.gone() || errors.Is(err, fee.ErrCeiling) || errors.Is(err, fee.ErrMarket) || errors.Is(err, errOff) || errors.Is(err, errAway):
	case s.acts && isKept(err):
	case errors.As(err, new(overError)):
		s.takeOver()
	default:
		s.t.Fatal(err)
	}
	s.feed()
}

func (s *storm) askMore() {
	n := len(s.ids)
	s.ids = append(s.ids, s.ask(s.request(n, func(r *intent.Request) {
		if s.chance.IntN(3) == 0 {
			r.Order = "row"
		}
		if s.acts {
			r.Client = []string{"ann", "bob"}[s.chance.IntN(2)]
			r.Subject = []string{"", "cat"}[s.chance.IntN(2)]
		}
		if s.prices && s.chance.IntN(2) == 0 {
			r.Gas.MaxFee = intent.NewAmount(1500 + uint64(s.chance.IntN(1000)))
		}
		if s.chance.IntN(5) == 0 {
			r.Gas.MaxFee = intent.NewAmount(900)
		}
		if s.chance.IntN(5) == 0 {
			r.Deadline = uint64(s.clock.now().Unix()) + 1 + uint64(s.chance.IntN(60))
		}
	}))...)
}

func (s *storm) changeMind() {
	if len(s.ids) == 0 {
		return
	}
	id := s.ids[s.chance.IntN(len(s.ids))]
	it := s.intent(id)
	switch {
	case it.End != nil || it.Stop.Reason != "":
	case s.chance.IntN(2) == 0:
		s.wish(id, intent.Cancel{At: s.clock.now()})
	case it.Requested.Request.Gas.MaxFee.IsZero() && it.SpeedUps < intent.SpeedUpsMax:
		s.wish(id, intent.SpeedUp{Fee: it.LeastSpeedUp().Max(intent.NewAmount(1000 + uint64(s.chance.IntN(500)))), At: s.clock.now()})
	}
	s.feed()
}

// move changes the price of gas, for the relay and for the chain.
func (s *storm) move() {
	base := uint64(s.chance.IntN(4000))
	s.fee = asking(base+100, 100)
	s.chain.SetBaseFee(base)
}

func (s *storm) over() bool {
	for _, id := range s.ids {
		if s.intent(id).End == nil {
			return false
		}
	}
	for slot := range s.state().Slots() {
		if !slot.IsFree() || len(slot.Attempts) > 0 { // a free nonce without attempts delays no other
			return false
		}
	}
	return true
}

// In any history, each nonce is used once, each intent is executed at most once, and once
// the faults end all intents complete.
func TestStorms(t *testing.T) {
	for seed := range uint64(stormsShort) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := &storm{world: newWorld(t), chance: rand.New(rand.NewPCG(seed, 7))}
			s.settings.Budget, s.settings.Trusted, s.settings.Confirmations = 1+s.chance.IntN(8), s.chance.IntN(3), 1+s.chance.IntN(3)
			s.hears = seed%2 == 1
			s.weather()
		})
	}
}

// The same holds while gas prices move all the time and intents have ceilings.
func TestStormsOfPrices(t *testing.T) {
	ways := 0
	for seed := range uint64(2 * stormsShort) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := &storm{world: newWorld(t), chance: rand.New(rand.NewPCG(seed, 8)), prices: true}
			s.policy.Ceiling = chain.PriceOf(3000)
			if seed%3 > 0 {
				s.settings.Stall = 4 * time.Second // or no intent has to give way in time
			}
			s.hears = seed%2 == 1
			s.weather()
			for _, id := range s.ids {
				ways += len(s.intent(id).GaveWay)
			}
		})
	}
	if ways == 0 {
		t.Error("nothing has given way: the test does not try it")
	}
	t.Logf("%d have given way", ways)
}

// The same holds while operators halt, pause, drain and limit at any time, balances fall,
// and days pass; and the operators' commands are obeyed.
func TestStormsOfOperators(t *testing.T) {
	for seed := range uint64(stormsShort) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := &storm{world: newWorld(t), chance: rand.New(rand.NewPCG(seed, 9)), acts: true}
			s.hole = 0 // a paused signer delays others
			s.settings.Budget, s.settings.Trusted, s.settings.Confirmations = 1+s.chance.IntN(8), s.chance.IntN(3), 1+s.chance.IntN(3)
			s.weather()
		})
	}
}

// weather runs the storm until its end.
func (s *storm) weather() {
	s.t.Helper()
	for range 4 {
		s.askMore()
	}
	for range 150 {
		s.step(true)
	}
	s.hold, s.may, s.away, s.fee = false, nil, nil, asking(200, 100)
	s.allow()
	s.chain.SetBaseFee(0)
	for n := 0; !s.over(); n++ {
		if n > 1000 {
			for slot := range s.state().Slots() {
				s.t.Logf("nonce %d of %s: filled %t, %d attempts, landed %v", slot.Nonce, slot.Intent, slot.Filled, len(slot.Attempts), slot.Landed)
			}
			for _, id := range s.ids {
				if it := s.intent(id); it.End == nil {
					s.t.Logf("%s is %s at %v, %+v, %v", id, it.Status(), it.Place, it.Stop, it.Requested.Request)
				}
			}
			s.t.Fatalf("it does not come to an end: %v", s.told)
		}
		if n%100 == 0 {
			s.clock.pass(s.settings.Stall)
		}
		s.step(false)
	}
	must(s.t, s.turns(s.worker(), 2)) // the last holder may have died at the end
	s.judge()
}
