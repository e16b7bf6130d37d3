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
			"How long an endpoint may take for a head or a block. "+
				"A usually quick endpoint gets eight times its usual latency, but at least a second. "+
				"Another endpoint is queried as well, long before that."),
		durations("endpoints.call-timeout", &e.CallTimeout, 8*s, 100*ms, 5*m,
			"How long an endpoint may take for any other read."),
		numbers("endpoints.max-lag", &e.MaxLag, 10, 1, 10_000,
			"How many blocks an endpoint may be behind the others before it leaves the rotation. It may be twice as many blocks ahead of all others."),
		numbers("endpoints.agree", &e.Agree, 2, 1, endpointsMax,
			"How many endpoints must agree on a receipt, a used nonce or a final block before it counts. If fewer endpoints are healthy, or were a moment ago, all of them must agree. 1 trusts the endpoint that reads use."),
		numbers("endpoints.rate", &e.Budget.Rate, 0, 0, rateMax,
			"How many JSON-RPC calls per second this process makes to one endpoint; each call of a batch counts; 0 is no limit. "+
				"If the endpoint answers 429, a lower rate is used for a while, growing by 2 % a second: of all calls if it answered a read of the service itself, otherwise of the client's calls of the kind. Waiting first attempts at transactions leave reads and repeats two fifths; clients take turns. "+
				"The list of chains may set this, `endpoints.burst`, `endpoints.daily` and `endpoints.concurrency` for each endpoint."),
		numbers("endpoints.burst", &e.Budget.Burst, 0, 0, burstMax,
			"How many calls may be made at once after a pause; 0 is the number of calls of one second. Reads leave a fifth of it for first attempts at transactions."),
		numbers("endpoints.daily", &e.Budget.Daily, 0, 0, dailyMax,
			"How many calls per day of UTC this process makes to one endpoint; 0 is no limit. First attempts at transactions and reads leave each other a fifth, and the last half is not for clients' calls. No client gets more calls than it leaves for the other clients; for first attempts, its share grows from half to all of the rest as the day passes. The count starts again at a restart."),
		numbers("endpoints.concurrency", &e.Budget.Concurrency, 64, 1, concurrencyMax,
			"How many requests to one endpoint run at once; further requests wait, or go to another endpoint. A fifth, but at least one, is for broadcasts only, and half is not for clients' calls. With 1, waiting broadcasts go next."),
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
