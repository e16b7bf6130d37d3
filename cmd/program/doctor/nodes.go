package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// nodeTime is how long one endpoint may take for all its answers.
const nodeTime = 10 * time.Second

// seen is what one endpoint has shown.
type seen struct {
	name   string
	head   chain.Block
	final  uint64
	took   time.Duration // for the head
	status rpc.Status
	err    error
}

// nodes diagnoses each endpoint by itself, so that one does not hide the faults of another.
func (x Examination) nodes(ctx context.Context) (parts []*Part, newest map[chain.ID]seen) {
	newest = map[chain.ID]seen{}
	for _, c := range x.Config.Chains {
		all := make([]seen, len(c.Endpoints))
		var asking sync.WaitGroup
		for i := range c.Endpoints {
			asking.Go(func() { all[i] = x.look(ctx, c, i) })
		}
		asking.Wait()
		var best seen
		for _, s := range all {
			if s.err == nil && s.head.Number >= best.head.Number {
				best = s
			}
		}
		for _, s := range all {
			parts = append(parts, x.node(c, s, best))
		}
		newest[c.ID] = best
	}
	return parts, newest
}

// look asks one endpoint.
func (x Examination) look(ctx context.Context, c config.Chain, i int) (s seen) {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	c.Endpoints = c.Endpoints[i : i+1]
	pool, err := rpc.Open(ctx, app.PoolConfig(x.Config, c, app.Ports{Log: slog.New(slog.DiscardHandler), Metrics: metrics.New("")}))
	if err != nil {
		return seen{name: c.Endpoints[0].Name, err: err}
	}
	defer pool.Close()
	began := x.Now()
	s.head, s.err = pool.Reader().Head(ctx)
	s.took = x.Now().Sub(began)
	s.status = pool.Status()[0]
	s.name = s.status.Name
	if s.err != nil {
		return s
	}
	if final, err := pool.Reader().Final(ctx, s.head); err == nil {
		s.final = final.Number
	}
	return s
}

func (x Examination) node(c config.Chain, s, best seen) *Part {
	p := partOf(fmt.Sprintf("chain %s, endpoint %s", c.Name, s.name))
	switch {
	case s.status.Ejected != "":
		p.find(Finding{Code: "endpoint-wrong", Says: "the endpoint is not used: " + s.status.Ejected, Do: "correct its URL in the setting chains"})
		return p
	case s.err != nil:
		p.find(Finding{
			Code: "endpoint-away", Says: "the endpoint does not answer: " + s.err.Error(),
			Next: "other endpoints of the chain are asked, and this one again from time to time", Do: "check its URL in the setting chains, its key, and the network",
		})
		return p
	}
	age := x.Now().Sub(time.Unix(int64(s.head.Time), 0)) //nolint:gosec // after 1970
	p.say("head", "block %d, %s old, answered in %s", s.head.Number, age.Round(time.Second), s.took.Round(time.Millisecond))
	p.say("final", "block %d", s.final)
	if lag := best.head.Number - s.head.Number; lag > uint64(x.Config.Endpoints.MaxLag) { //nolint:gosec // at least 1
		p.find(Finding{Code: "endpoint-behind", Says: fmt.Sprintf("the endpoint is %d blocks behind %s", lag, best.name), Next: "it is not used until it has caught up"})
	}
	switch {
	case age > headMost:
		p.find(Finding{Code: "head-old", Says: fmt.Sprintf("its newest block is %s old", age.Round(time.Second)), Do: "compare with a block explorer: the chain stands still, the node does, or this machine's clock is fast"})
	case age < -headMost:
		p.find(Finding{Code: "clock-behind", Says: fmt.Sprintf("its newest block is %s ahead of this machine's clock", (-age).Round(time.Second)), Do: "set the clock by NTP"})
	}
	return p
}
