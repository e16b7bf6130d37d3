package budget

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// replica is a process with its own lane, and its last view of the budget.
type replica struct {
	lane  Lane
	seen  State
	at    int // number of events read
	asked byte
}

// stream is a budget's event stream. Without careful, it accepts appends at any version.
type stream struct {
	events  []Event
	whole   State // folded from all events
	careful bool
}

func (s *stream) append(events ...Event) {
	for _, e := range events {
		s.events, s.whole = append(s.events, e), s.whole.Evolve(e)
	}
}

// catchUp reads the new events.
func (r *replica) catchUp(s *stream) {
	for _, e := range s.events[r.at:] {
		r.seen, r.at = r.seen.Evolve(e), r.at+1
	}
}

// reserve retries a reservation until no other replica conflicts. With lost, it loses the answer
// and repeats the command.
func (r *replica) reserve(s *stream, fee uint64, lost bool) {
	r.asked++
	c := Reserve{today, r.lane, 1, []Charge{{Purpose{Intent: chain.IntentID{r.lane.Signer[0], r.asked}}, "payroll", "", fees(fee)}}, epoch}
	for {
		events, err := r.seen.Decide(c)
		if err != nil || len(events) == 0 {
			return
		}
		if s.careful && r.at != len(s.events) {
			r.catchUp(s) // a conflict
			continue
		}
		s.append(events...)
		if !lost {
			return
		}
		lost = false
		r.catchUp(s)
	}
}

// spend has replicas reserve and settle, each with its own view. It returns the highest sum
// reserved at any time.
func spend(s *stream, choose func(below int) int) (most uint64) {
	fifty := Account{Kind: OnChain}
	s.append(LimitSet{fifty, Limit{Fee: amount(50)}, "ada", "as agreed", epoch})
	replicas := []*replica{{lane: one}, {lane: two}, {lane: Lane{Signer: chain.Address{3}}}}
	for range 40 {
		r := replicas[choose(len(replicas))]
		switch choose(4) {
		case 0:
			r.catchUp(s)
		case 1:
			r.catchUp(s)
			for _, open := range r.seen.Open(r.lane)[:min(len(r.seen.Open(r.lane)), 1)] {
				events, _ := r.seen.Decide(Settle{today, r.lane, 1, []Spent{{open.Purpose, open.Cap.min(fees(uint64(choose(3))))}}, nil, epoch})
				s.append(events...)
			}
		default:
			r.reserve(s, uint64(1+choose(20)), choose(4) == 0)
		}
		most = max(most, s.whole.Used(today, fifty).Fee.Int().Uint64())
	}
	return most
}

// Replicas with their own lanes and outdated views never reserve more than the limit together,
// and nothing twice. The version check alone ensures that.
func TestReplicasShareABudget(t *testing.T) {
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		most := spend(&stream{careful: true}, func(below int) int { return rapid.IntRange(0, below-1).Draw(t, "choice") })
		if most > 50 {
			t.Fatalf("%d are reserved, 50 is the limit", most)
		}
		if most > 40 {
			reached++
		}
	})
	over := 0
	for seed := range 20 {
		choices := rapid.SliceOfN(rapid.IntRange(0, 1<<16), 300, 300).Example(seed)
		most := spend(&stream{}, func(below int) int {
			n := choices[0] % below
			choices = choices[1:]
			return n
		})
		if most > 50 {
			over++
		}
	}
	if reached == 0 || over == 0 {
		t.Errorf("the limit was neared %d times, and overrun %d times where no version is checked: there was no race", reached, over)
	}
}
