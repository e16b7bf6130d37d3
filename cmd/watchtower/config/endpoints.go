package config

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Endpoints configures the requests to every chain's nodes.
type Endpoints struct {
	HeadTimeout time.Duration
	CallTimeout time.Duration
	MaxLag      int // in blocks
	Agree       int // endpoints
	Budget      Budget
}

// Budget limits the requests of one process to one endpoint. Rate and Daily 0 are no limit;
// Burst 0 follows from Rate.
type Budget struct {
	Rate        int // calls per second
	Burst       int // calls at once
	Daily       int // calls per day
	Concurrency int // concurrent requests
}

// BudgetPart is one endpoint's own budget; nil fields keep the default.
type BudgetPart struct{ Rate, Burst, Daily, Concurrency *int }

// Of returns the budget of an endpoint: the default, with its entry's own values.
func (b Budget) Of(e Endpoint) Budget {
	for _, part := range []struct{ own, into *int }{
		{e.Budget.Rate, &b.Rate}, {e.Budget.Burst, &b.Burst},
		{e.Budget.Daily, &b.Daily}, {e.Budget.Concurrency, &b.Concurrency},
	} {
		if part.own != nil {
			*part.into = *part.own
		}
	}
	return b
}

// Bounds of a budget, in a setting and in an endpoint's entry.
const (
	rateMax        = 1_000_000
	burstMax       = 1_000_000
	dailyMax       = 1_000_000_000
	concurrencyMax = 4096
)

func (d *draft) nodes() []*setting {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	e := &d.Endpoints
	return []*setting{
		durations("endpoints.head-timeout", &e.HeadTimeout, 2500*ms, 100*ms, m,
			"How long an endpoint may take for a head or a block; one that is usually quick gets eight times its usual latency, but a second at least. "+
				"Long before that another is asked as well."),
		durations("endpoints.call-timeout", &e.CallTimeout, 8*s, 100*ms, 5*m,
			"How long an endpoint may take for any other read."),
		numbers("endpoints.max-lag", &e.MaxLag, 10, 1, 10_000,
			"How many blocks an endpoint may be behind the others, and half of how many it may be ahead of all of them, before it is out of rotation."),
		numbers("endpoints.agree", &e.Agree, 2, 1, endpointsMax,
			"How many endpoints have to say the same of a receipt, a used nonce or a final block before it counts, as far as so many are healthy, or were a moment ago. 1 believes whichever is read from."),
		numbers("endpoints.rate", &e.Budget.Rate, 0, 0, rateMax,
			"How many JSON-RPC calls per second one endpoint is asked by this process, those in a batch counted one by one; 0 sets no bound. "+
				"This and the next three may be set for each endpoint in the list of chains."),
		numbers("endpoints.burst", &e.Budget.Burst, 0, 0, burstMax,
			"How many calls may come at once after a pause; 0 is a second's worth. Reads leave a fifth of it for broadcasts."),
		numbers("endpoints.daily", &e.Budget.Daily, 0, 0, dailyMax,
			"How many calls per day of UTC one endpoint is asked by this process; 0 sets no bound. Of the last fifth broadcasts alone may take, and of the last half nothing is passed on for clients; no client gets more passed on than it leaves for others. A restart counts anew."),
		numbers("endpoints.concurrency", &e.Budget.Concurrency, 64, 1, concurrencyMax,
			"How many requests to one endpoint are under way at once; more wait, or go to another. A fifth, but one at least, is for broadcasts alone, and a half for other things than what clients ask for; with 1 broadcasts go next."),
	}
}

// budget lists the fields of an endpoint's entry that set its budget.
func (f *file) budget(path string, part *BudgetPart) []field {
	bounded := func(name string, low, high int, into **int) field {
		return field{name, func(n ast.Node) {
			f.item(path+"."+name, n, number, func(text string) error {
				value, err := parseWhole(text)
				if err != nil {
					return err
				}
				if value < int64(low) || value > int64(high) {
					return fmt.Errorf("%d is not within %d to %d", value, low, high)
				}
				whole := int(value)
				*into = &whole
				return nil
			})
		}}
	}
	return []field{
		bounded("rate", 0, rateMax, &part.Rate), bounded("burst", 0, burstMax, &part.Burst),
		bounded("daily", 0, dailyMax, &part.Daily), bounded("concurrency", 1, concurrencyMax, &part.Concurrency),
	}
}
