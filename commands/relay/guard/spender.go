package guard

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
)

// spender returns who a budget's command takes turns for: its lane, if all clients share that, else
// the client whose intents the lane has. A client may ask for hundreds of lanes.
func spender(s budget.State, c budget.Command) string {
	switch c := c.(type) {
	case budget.Reserve:
		return laneTurn(c.Lane, func() string { return c.Charges[0].Client })
	case budget.Settle:
		return laneTurn(c.Lane, func() string {
			r, _ := s.Reserved(c.Lane, c.Spent[0].Purpose)
			return r.Client
		})
	case budget.SetLimit:
		return "operator"
	}
	panic(fmt.Sprintf("guard: unknown command %T", c))
}

func laneTurn(l budget.Lane, client func() string) string {
	if l.NonceKey == (chain.NonceKey{}) {
		return "lane " + l.Signer.String()
	}
	return "client " + client()
}

// purposes counts the reservations that a command makes or ends.
func purposes(c budget.Command) int {
	switch c := c.(type) {
	case budget.Reserve:
		return len(c.Charges)
	case budget.Settle:
		return len(c.Spent) + len(c.Holes)
	}
	return 1
}
