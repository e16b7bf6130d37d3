package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// handlers builds the servers of both listeners.
func (a *App) handlers(c config.Config, b Build, pools []*rpc.Pool, level *slog.LevelVar) Handlers {
	public := a.front(c)
	public.Submit, public.Query, public.Groups, public.Board = a.Submit, a.query, a.shownGroups(), a.Ports.Storage.Queue
	public.Stale, public.Canceler, public.Tail = a.stale(), a.canceler(), a.Tail
	public.Health, public.RPC, public.Submitted = a.health(c, b, pools), a.jsonRPC(c, b, pools), a.Ports.Metrics.Submission
	public.Idempotency = api.Idempotency{
		// A request still pending after its connection must have ended belongs to a dead
		// process.
		Requests: a.Ports.Storage.Requests, Keep: c.Idempotency.Keep, Hold: idempotencyHold + c.API.WriteTimeout,
		Share: c.Quotas.Requests,
	}
	limits := public.Limits
	internal := public
	internal.Admin = api.Admin{
		Keys: Keys(a.Store), Level: level, Drain: a.served.stop, Profiles: c.Profiling, Exposed: !config.IsLoopback(c.MetricsListen),
	}
	internal.Admin.Routes = append(internal.Admin.Routes, a.extension.Admin...)
	internal.Admin.Kinds = append(internal.Admin.Kinds, a.extension.Kinds...)
	return Handlers{
		API:         api.Server(api.New(public), limits, a.Ports.Log),
		Metrics:     api.Server(api.Internal(internal, a.Ports.Metrics.Handler()), limits, a.Ports.Log),
		Connections: limits.Connections, TrustedProxies: c.Rates.TrustedProxies,
	}
}

// front is the configuration that all APIs of this process share.
func (a *App) front(c config.Config) api.Config {
	return api.Config{
		Limits: apiLimits(c), Rates: apiRates(c.Rates), Lists: a.lists, Scans: a.scans, Origins: c.API.Origins, Hosts: c.API.Hosts,
		Access: api.Access{Keys: a.keyring.State, Open: c.OpenAccess}, CursorKey: a.Ports.Master.Derive("api cursor"),
		Transient: a.Ports.Storage.Transient, Now: a.Ports.Now, Pause: a.Ports.Pause, Random: a.Ports.Random, Log: a.Ports.Log,
		Requested: a.Ports.Metrics.Request, Traced: a.Ports.Tracing.Request, QuotaUsed: a.Ports.Metrics.QuotaUsed,
	}
}

func apiLimits(all config.Config) api.Limits {
	c, l := all.API, api.DefaultLimits() // defaults for limits that have no setting
	l.ClientStreams = all.Quotas.Streams
	l.BodyBytes, l.BatchItems, l.TransactionBytes = c.MaxBodyBytes, c.MaxBatch, c.MaxTransactionBytes
	l.HeaderBytes, l.Connections = c.MaxHeaderBytes, c.MaxConnections
	l.HeaderTimeout, l.ReadTimeout, l.WriteTimeout = c.HeaderTimeout, c.ReadTimeout, c.WriteTimeout
	l.IdleTimeout, l.WorkTimeout = c.IdleTimeout, c.WorkTimeout
	return l
}

func apiRates(c config.Rates) api.Rates {
	return api.Rates{Address: api.Rate(c.Address), Key: api.Rate(c.Key), Clients: c.Clients, TrustedProxies: c.TrustedProxies}
}

func (a *App) health(c config.Config, b Build, pools []*rpc.Pool) api.Health {
	h := api.Health{
		Version: b.Version, GitSHA: b.GitSHA, BuildTimestamp: b.Timestamp, StartedAt: a.served.started, Deployment: a.deployment(),
		Scheduler: api.SchedulerSettings{
			PollInterval: c.Scheduler.PollInterval, LeaseTTL: c.Scheduler.LeaseTTL, MaxConcurrency: c.Scheduler.MaxConcurrency,
			RetryMin: c.Scheduler.Schedule.RetryMin, RetryMax: c.Scheduler.Schedule.RetryMax,
			ExpirySoonWindow: c.Scheduler.Schedule.ExpirySoonWindow, ExpirySoonRetryMax: c.Scheduler.Schedule.ExpirySoonRetryMax,
		},
		Watcher:     api.WatcherSettings{PollInterval: c.Watcher.PollInterval, UseWebSocket: c.Watcher.UseWebSocket},
		Broadcaster: api.BroadcasterSettings{Fanout: c.Broadcaster.Fanout, Timeout: c.Broadcaster.Timeout},
		Database:    a.database, Stopping: a.served.isStopping,
		Heads: a.served.heads, Readers: a.readers,
		Endpoints: func() (all []api.Endpoint) {
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
func (a *App) readers(ctx context.Context) ([]api.Reader, error) {
	head, err := a.Store.Head(ctx)
	if err != nil {
		return nil, err
	}
	var all []api.Reader
	readers, halted := a.served.allReaders(), a.served.allHalted()
	for name, h := range halted {
		readers[name] = h.at - 1 // between two attempts it has no position
	}
	for name, at := range readers {
		r := api.Reader{Name: name, Position: at, Head: max(head, at), Problem: halted[name].why}
		r.Lag = uint64(r.Head - at)
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y api.Reader) int { return cmp.Compare(x.Name, y.Name) })
	return all, nil
}
