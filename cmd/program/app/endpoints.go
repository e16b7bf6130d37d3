package app

import (
	"cmp"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// PoolConfig is the configuration of one chain's node pool.
func PoolConfig(c config.Config, chainConfig config.Chain, p Ports) rpc.Config {
	endpoints := make([]rpc.Endpoint, len(chainConfig.Endpoints))
	for i, e := range chainConfig.Endpoints {
		b := c.Endpoints.Budget.Of(e)
		endpoints[i] = rpc.Endpoint{
			Name: e.Name, URL: e.URL.Reveal(), WebSocket: e.WebSocket.Reveal(),
			Budget: rpc.Budget{Rate: float64(b.Rate), Burst: b.Burst, Daily: b.Daily, Concurrency: b.Concurrency},
		}
	}
	id := chainConfig.ID.String()
	return rpc.Config{
		Chain: chainConfig.ID, Endpoints: endpoints, Confirmations: chainConfig.Confirmations,
		Fanout: c.Broadcaster.Fanout, SendTimeout: c.Broadcaster.Timeout, Poll: c.Watcher.PollInterval,
		HeadTimeout: c.Endpoints.HeadTimeout, CallTimeout: c.Endpoints.CallTimeout,
		MaxLag: uint64(c.Endpoints.MaxLag), Agree: c.Endpoints.Agree, //nolint:gosec // at least 1
		DeriveWebSocket: c.Watcher.UseWebSocket, Log: p.Log,
		Observe: func(made rpc.Call) {
			p.Metrics.Call(id, made.Endpoint, made.Method, made.Class, string(made.Outcome), made.Took)
		},
	}
}

// exportEndpoints exports the state of the pools' endpoints as metrics.
func (a *App) exportEndpoints(c config.Config, pools []*rpc.Pool) {
	a.Ports.Metrics.Endpoints(words(rpc.States()), words(rpc.Breakers()), func() (all []metrics.Endpoint) {
		for i, p := range pools {
			for _, s := range p.Status() {
				all = append(all, metrics.Endpoint{
					Chain: c.Chains[i].ID.String(), Name: s.Name, State: string(s.State), Breaker: string(s.Breaker),
					Score: s.Score, Latency: s.Latency, Head: s.Head, Lag: s.Lag, Lead: s.Lead, Reading: s.Reading,
					InFlight: s.Budget.InFlight, Slots: s.Budget.Concurrency,
					Trips: s.Trips, Contradictions: s.Lies, Differences: s.Differences, Withheld: s.Budget.Withheld,
					BudgetNow: s.Budget.Now, HasRate: s.Budget.Rate > 0, BudgetToday: s.Budget.Today, HasDaily: s.Budget.Daily > 0,
				})
			}
		}
		return all
	})
}

func words[W ~string](all []W) []string {
	texts := make([]string, len(all))
	for i, word := range all {
		texts[i] = string(word)
	}
	return texts
}

// endpoints converts the state of a chain's nodes for /health.
func endpoints(id chain.ID, statuses []rpc.Status) []rest.Endpoint {
	shown := make([]rest.Endpoint, len(statuses))
	for i, s := range statuses {
		e := rest.Endpoint{
			Chain: id, Name: s.Name, Healthy: s.State == rpc.Healthy, Score: s.Score, Head: s.Head,
			State: string(s.State), Breaker: string(s.Breaker), Reading: s.Reading, Lag: s.Lag, Lead: s.Lead,
			LatencyMS: milliseconds(s.Latency), ErrorRate: s.Failures, Trips: s.Trips, Contradictions: s.Lies, Differences: s.Differences,
			InFlight: s.Budget.InFlight, MaxInFlight: s.Budget.Concurrency, Withheld: s.Budget.Withheld,
			LastError: s.LastError,
		}
		if s.Budget.Rate > 0 {
			e.Rate = &rest.EndpointRate{PerSecond: s.Budget.Rate, Burst: s.Budget.Burst, Left: s.Budget.Now}
		}
		if s.Budget.Daily > 0 {
			e.Daily = &rest.EndpointDaily{Calls: s.Budget.Daily, Left: s.Budget.Today}
		}
		if !s.LastErrorAt.IsZero() {
			e.LastErrorAt = s.LastErrorAt.Unix()
		}
		if !e.Healthy {
			e.Problem = cmp.Or(s.Ejected, s.LastError, string(s.State))
		}
		shown[i] = e
	}
	return shown
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}
