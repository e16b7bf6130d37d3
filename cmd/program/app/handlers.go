package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// handlers builds the servers of both listeners.
func (a *App) handlers(c config.Config, b Build, pools []*rpc.Pool, level *slog.LevelVar) Handlers {
	common := a.front(c)
	common.Health = a.health(c, b, pools)
	limits := common.Limits
	internal := common
	public := delivery.Config{
		Config: common, Submit: a.Submit, Query: a.query, Groups: a.shownGroups(), Board: a.Ports.Storage.Queue,
		Stale: a.stale(), Canceler: a.canceler(), Tail: a.Tail, RPC: a.jsonRPC(c, b, pools), Submitted: a.Ports.Metrics.Submission,
	}
	public.Idempotency = rest.Idempotency{
		// A request still pending after its connection must have ended belongs to a dead
		// process.
		Requests: a.Ports.Storage.Requests, Keep: c.Idempotency.Keep, Hold: idempotencyHold + c.API.WriteTimeout,
		Share: c.Quotas.Requests,
	}
	internal.Admin = rest.Admin{
		Keys: Keys(a.Store), Level: level, Drain: a.served.stop, Profiles: c.Profiling, Exposed: !config.IsLoopback(c.MetricsListen),
	}
	internal.Admin.Routes = append(internal.Admin.Routes, a.extension.Admin...)
	internal.Admin.Kinds = append(internal.Admin.Kinds, a.extension.Kinds...)
	api, operators := delivery.New(public), rest.Internal(internal, a.Ports.Metrics.Handler())
	return Handlers{
		API:         rest.Server(api, limits, a.Ports.Log),
		Metrics:     rest.Server(a.withConsole(c, b, internal, api, operators), limits, a.Ports.Log),
		Connections: limits.Connections, TrustedProxies: c.Rates.TrustedProxies,
	}
}

// front is the configuration that all APIs of this process share.
func (a *App) front(c config.Config) rest.Config {
	return rest.Config{
		Limits: apiLimits(c), Rates: apiRates(c.Rates), Lists: a.lists, Scans: a.scans, Origins: c.API.Origins, Hosts: c.API.Hosts,
		Access: rest.Access{Keys: a.keyring.State, Open: c.OpenAccess}, CursorKey: a.Ports.Master.Derive("api cursor"),
		Transient: a.Ports.Storage.Transient, Now: a.Ports.Now, Pause: a.Ports.Pause, Random: a.Ports.Random, Log: a.Ports.Log,
		Requested: a.Ports.Metrics.Request, Traced: a.Ports.Tracing.Request, QuotaUsed: a.Ports.Metrics.QuotaUsed,
	}
}

func apiLimits(all config.Config) rest.Limits {
	c, l := all.API, rest.DefaultLimits() // defaults for limits that have no setting
	l.ClientStreams = all.Quotas.Streams
	l.BodyBytes, l.BatchItems, l.TransactionBytes = c.MaxBodyBytes, c.MaxBatch, c.MaxTransactionBytes
	l.HeaderBytes, l.Connections = c.MaxHeaderBytes, c.MaxConnections
	l.HeaderTimeout, l.ReadTimeout, l.WriteTimeout = c.HeaderTimeout, c.ReadTimeout, c.WriteTimeout
	l.IdleTimeout, l.WorkTimeout = c.IdleTimeout, c.WorkTimeout
	return l
}

func apiRates(c config.Rates) rest.Rates {
	return rest.Rates{Address: rest.Rate(c.Address), Key: rest.Rate(c.Key), Clients: c.Clients, TrustedProxies: c.TrustedProxies}
}

func (a *App) health(c config.Config, b Build, pools []*rpc.Pool) rest.Health {
	h := rest.Health{
		Version: b.Version, GitSHA: b.GitSHA, BuildTimestamp: b.Timestamp, StartedAt: a.served.started, Deployment: a.deployment(),
		Scheduler: rest.SchedulerSettings{
			PollInterval: c.Scheduler.PollInterval, LeaseTTL: c.Scheduler.LeaseTTL, MaxConcurrency: c.Scheduler.MaxConcurrency,
			RetryMin: c.Scheduler.Schedule.RetryMin, RetryMax: c.Scheduler.Schedule.RetryMax,
			ExpirySoonWindow: c.Scheduler.Schedule.ExpirySoonWindow, ExpirySoonRetryMax: c.Scheduler.Schedule.ExpirySoonRetryMax,
		},
		Watcher:     rest.WatcherSettings{PollInterval: c.Watcher.PollInterval, UseWebSocket: c.Watcher.UseWebSocket},
		Broadcaster: rest.BroadcasterSettings{Fanout: c.Broadcaster.Fanout, Timeout: c.Broadcaster.Timeout},
		Database:    a.database, Stopping: a.served.isStopping,
		Heads: a.served.heads, Readers: a.readers,
		Endpoints: func() (all []rest.Endpoint) {
			for i, p := range pools {
				all = append(all, endpoints(c.Chains[i].ID, p.Status())...)
			}
			return all
		},
	}
	if a.Ports.Redis != nil {
		h.Redis = a.Ports.Redis.Ping
	}
	for _, ch := range c.Chains {
		h.Chains = append(h.Chains, ch.ID)
		h.RPCEndpoints += len(ch.Endpoints)
	}
	return h
}

// readers returns the positions of the log readers that run in this process.
func (a *App) readers(ctx context.Context) ([]rest.Reader, error) {
	head, err := a.Store.Head(ctx)
	if err != nil {
		return nil, err
	}
	var all []rest.Reader
	readers, halted := a.served.allReaders(), a.served.allHalted()
	for name, h := range halted {
		readers[name] = h.at - 1 // between two attempts it has no position
	}
	for name, at := range readers {
		r := rest.Reader{Name: name, Position: at, Head: max(head, at), Problem: halted[name].why}
		r.Lag = uint64(r.Head - at)
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y rest.Reader) int { return cmp.Compare(x.Name, y.Name) })
	return all, nil
}
