package budget

import (
	"flag"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events that have none yet")

// samples returns one event of every current shape, with every field set.
func samples() []Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	lane := Lane{chain.Address{1, 2}, chain.NonceKey{31: 3}}
	sum := Sum{chain.NewAmount(630_000_000_000_000), chain.NewAmount(1_000_000_000_000_000_000)}
	limit := sum.Value
	return []Event{
		Reserved{DayOf(at), lane, 3, []Charge{{Purpose{Intent: chain.IntentID{1}}, "payroll", "employee 7", sum}, {Purpose{Nonce: 7}, "", "", Sum{Fee: sum.Fee}}}, at},
		Settled{DayOf(at), lane, 3, []Spent{{Purpose{Intent: chain.IntentID{1}}, sum}, {Purpose{Nonce: 7}, Sum{}}}, at},
		LimitSet{Account{OfSubject, "payroll", "employee 7", chain.Address{4}}, Limit{&limit, &limit}, "operator:ada", "as it was agreed", at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
