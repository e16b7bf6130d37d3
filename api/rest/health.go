package rest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Health holds the facts and checks behind /health.
type Health struct {
	Version        string
	GitSHA         string // empty if the build did not set it
	BuildTimestamp string // RFC 3339; empty if the build did not set it
	StartedAt      time.Time
	Deployment     string // the deployment's name in messages that owners sign
	Chains         []chain.ID
	RPCEndpoints   int
	Scheduler      SchedulerSettings
	Watcher        WatcherSettings
	Broadcaster    BroadcasterSettings

	// Database returns an error if the store in use cannot be reached.
	Database func(ctx context.Context) error
	// Redis is nil if none is configured. Losing it loses no transaction.
	Redis func(ctx context.Context) error
	// Stopping, when set, reports whether the service is stopping.
	Stopping func() bool
	// Endpoints, when set, returns the state of each node.
	Endpoints func() []Endpoint
	// Heads, when set, returns how far this process has watched each chain.
	Heads func() []Head
	// Readers, when set, returns the position of each reader of the log.
	Readers func(ctx context.Context) ([]Reader, error)
}

// SchedulerSettings are the settings in force.
type SchedulerSettings struct {
	PollInterval, LeaseTTL               time.Duration
	MaxConcurrency                       int
	RetryMin, RetryMax                   time.Duration
	ExpirySoonWindow, ExpirySoonRetryMax time.Duration
}

// WatcherSettings are the watcher's settings in force.
type WatcherSettings struct {
	PollInterval time.Duration
	UseWebSocket bool
}

// BroadcasterSettings are the broadcaster's settings in force.
type BroadcasterSettings struct {
	Fanout  int
	Timeout time.Duration
}

// Endpoint is the state of one node. No field may contain the node's URL.
type Endpoint struct {
	Chain   chain.ID `json:"chainId"`
	Name    string   `json:"name"`
	Healthy bool     `json:"healthy"` // in rotation
	Score   float64  `json:"score"`   // 0 to 1, higher is better
	Head    uint64   `json:"head"`    // the newest block it has reported
	// State is the reason for Healthy being false. Breaker is the state of the circuit breaker.
	State   string `json:"state"`
	Breaker string `json:"breaker"`
	Reading bool   `json:"reading"` // the chain is read from this node
	Lag     uint64 `json:"lag"`     // blocks behind the other nodes when it reported its head
	Lead    uint64 `json:"lead"`    // blocks ahead of all other nodes

	LatencyMS   float64        `json:"latencyMs"` // moving average, in milliseconds
	ErrorRate   float64        `json:"errorRate"` // moving share of failed calls, 0 to 1
	InFlight    int            `json:"inFlight"`  // requests in progress
	MaxInFlight int            `json:"maxInFlight"`
	Rate        *EndpointRate  `json:"rate,omitempty"`  // nil without a limit
	Daily       *EndpointDaily `json:"daily,omitempty"` // nil without a limit

	// Counted since the start. Trips: the breaker opened. Contradictions: answers that
	// contradicted themselves or most other nodes. Differences: answers that differed from
	// other nodes' without a majority, so that none was trusted. Withheld: calls that the
	// budget forbade.
	Trips          uint64 `json:"trips"`
	Contradictions uint64 `json:"contradictions"`
	Differences    uint64 `json:"differences"`
	Withheld       uint64 `json:"withheld"`

	Problem     string `json:"problem,omitempty"`
	LastError   string `json:"lastError,omitempty"`
	LastErrorAt int64  `json:"lastErrorAt,omitempty"`
}

// EndpointRate is an endpoint's budget of calls per second, with its burst.
type EndpointRate struct {
	PerSecond float64 `json:"perSecond"`
	Burst     int     `json:"burst"`
	Left      float64 `json:"left"` // calls that may be made now
}

// EndpointDaily is an endpoint's budget of calls per UTC day.
type EndpointDaily struct {
	Calls int `json:"calls"`
	Left  int `json:"left"`
}

// Head is how far one chain has been watched.
type Head struct {
	Chain chain.ID `json:"chainId"`
	Head  uint64   `json:"head"`
	Final uint64   `json:"final"` // no block up to this one can leave the chain
}

// Reader is the position of one reader of the log.
type Reader struct {
	Name     string            `json:"name"`
	Position eventlog.Position `json:"position"`
	Head     eventlog.Position `json:"head"` // end of the log
	Lag      uint64            `json:"lag"`  // positions between Position and Head
	// Problem is why the reader cannot get past the next position; empty if it can.
	Problem string `json:"problem,omitempty"`
}

type healthReport struct {
	Status        string     `json:"status"` // ok or degraded
	Service       string     `json:"service"`
	Version       string     `json:"version"`
	Build         buildInfo  `json:"build"`
	Now           int64      `json:"now"`
	StartedAt     int64      `json:"startedAt"`
	UptimeSeconds int64      `json:"uptimeSeconds"`
	Deployment    string     `json:"deployment,omitempty"`
	Chains        []chain.ID `json:"chains"`
	RPCEndpoints  int        `json:"rpcEndpoints"`
	Scheduler     struct {
		PollIntervalMS          int64   `json:"pollIntervalMs"`
		LeaseTTLSeconds         float64 `json:"leaseTtlSeconds"`
		MaxConcurrency          int     `json:"maxConcurrency"`
		RetryMinMS              int64   `json:"retryMinMs"`
		RetryMaxMS              int64   `json:"retryMaxMs"`
		ExpirySoonWindowSeconds float64 `json:"expirySoonWindowSeconds"`
		ExpirySoonRetryMaxMS    int64   `json:"expirySoonRetryMaxMs"`
	} `json:"scheduler"`
	Watcher struct {
		PollIntervalMS int64 `json:"pollIntervalMs"`
		UseWebSocket   bool  `json:"useWebsocket"`
	} `json:"watcher"`
	Broadcaster struct {
		Fanout    int   `json:"fanout"`
		TimeoutMS int64 `json:"timeoutMs"`
	} `json:"broadcaster"`
	API struct {
		MaxBodyBytes int64 `json:"maxBodyBytes"`
	} `json:"api"`
	Dependencies map[string]dependency `json:"dependencies"`
	Endpoints    []Endpoint            `json:"endpoints,omitempty"`
	Heads        []Head                `json:"heads,omitempty"`
	Readers      []Reader              `json:"readers,omitempty"`
}

type buildInfo struct {
	GitSHA         string `json:"gitSha,omitempty"`
	BuildTimestamp string `json:"buildTimestamp,omitempty"`
}

type dependency struct {
	OK bool `json:"ok"`
}

// healthTimeout bounds how long /health and /readyz wait for a dependency: probes have short
// timeouts.
const healthTimeout = 2 * time.Second

// Health returns the routes for monitors and probes: /health, /livez and /readyz.
func (f *Front) Health() []Route {
	answer := func(e endpoint) func(Request) error { return func(r Request) error { return e(r.w, r.Request) } }
	return []Route{
		{Method: http.MethodGet, Path: healthPath, Scope: Public, Answer: answer(f.a.health)},
		{Method: http.MethodGet, Path: "/livez", Scope: probing, Answer: answer(f.a.live)},
		{Method: http.MethodGet, Path: "/readyz", Scope: probing, Answer: answer(f.a.ready)},
	}
}

// health answers GET /health. It answers 503 if the database or a configured Redis cannot be
// reached, or if a reader of the log is stuck at an event.
func (a *api) health(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	out := a.report()
	out.Dependencies = a.check(ctx, exchangeOf(r))
	status := http.StatusOK
	for _, d := range out.Dependencies {
		if !d.OK {
			out.Status, status = "degraded", http.StatusServiceUnavailable
		}
	}
	inside := a.showsInside(exchangeOf(r))
	if a.Health.Endpoints != nil && inside {
		out.Endpoints = a.Health.Endpoints()
	}
	if a.Health.Heads != nil && inside {
		out.Heads = a.Health.Heads()
	}
	if a.Health.Readers != nil && status == http.StatusOK {
		readers, err := a.dependencies.readers.get(ctx, a.Now(), a.Health.Readers)
		if err != nil {
			a.Log.WarnContext(ctx, "the readers' state could not be read", "err", err)
		}
		if inside {
			out.Readers = readers
		}
		if slices.ContainsFunc(readers, func(r Reader) bool { return r.Problem != "" }) {
			out.Status, status = "degraded", http.StatusServiceUnavailable
		}
	}
	return reply(w, status, out)
}

// showsInside reports whether a request may see the state of nodes, chains and readers, beside
// the public part of /health. Once keys exist, this needs a valid key that can read.
func (a *api) showsInside(on *exchange) bool {
	if on.key == nil {
		return !a.Access.Current().Closed() && !a.Access.Always || a.Access.Open
	}
	return on.key.May(access.Read) || on.key.May(access.Audit)
}

func (a *api) report() healthReport {
	h, now := a.Health, a.Now()
	out := healthReport{
		Status: "ok", Service: "tempo-watchtower", Version: h.Version, Build: buildInfo{h.GitSHA, h.BuildTimestamp},
		Now: now.Unix(), StartedAt: h.StartedAt.Unix(), UptimeSeconds: int64(now.Sub(h.StartedAt) / time.Second),
		Deployment: h.Deployment, Chains: append([]chain.ID{}, h.Chains...), RPCEndpoints: h.RPCEndpoints,
	}
	s := &out.Scheduler
	s.PollIntervalMS, s.LeaseTTLSeconds = h.Scheduler.PollInterval.Milliseconds(), h.Scheduler.LeaseTTL.Seconds()
	s.MaxConcurrency = h.Scheduler.MaxConcurrency
	s.RetryMinMS, s.RetryMaxMS = h.Scheduler.RetryMin.Milliseconds(), h.Scheduler.RetryMax.Milliseconds()
	s.ExpirySoonWindowSeconds = h.Scheduler.ExpirySoonWindow.Seconds()
	s.ExpirySoonRetryMaxMS = h.Scheduler.ExpirySoonRetryMax.Milliseconds()
	out.Watcher.PollIntervalMS, out.Watcher.UseWebSocket = h.Watcher.PollInterval.Milliseconds(), h.Watcher.UseWebSocket
	out.Broadcaster.Fanout, out.Broadcaster.TimeoutMS = h.Broadcaster.Fanout, h.Broadcaster.Timeout.Milliseconds()
	out.API.MaxBodyBytes = a.Limits.BodyBytes
	return out
}

// check asks all dependencies concurrently. Their errors are logged and not sent to the client,
// as they may contain internals.
func (a *api) check(ctx context.Context, on *exchange) map[string]dependency {
	var asking sync.WaitGroup
	var database, redis error
	asking.Go(func() { database = a.checkOne(ctx, on, "database", &a.dependencies.database, a.Health.Database) })
	if a.Health.Redis != nil {
		asking.Go(func() { redis = a.checkOne(ctx, on, "redis", &a.dependencies.redis, a.Health.Redis) })
	}
	asking.Wait()
	found := map[string]dependency{"database": {OK: database == nil}}
	if a.Health.Redis != nil {
		found["redis"] = dependency{OK: redis == nil}
	}
	return found
}

// checkOne asks a dependency, or returns the result that another request has just got. The request
// that asks logs the error.
func (a *api) checkOne(ctx context.Context, on *exchange, name string, results *lastCheck[struct{}], ask func(context.Context) error) error {
	_, err := results.get(ctx, a.Now(), func(ctx context.Context) (struct{}, error) {
		err := ask(ctx)
		if err != nil {
			a.Log.LogAttrs(ctx, slog.LevelWarn, "a dependency could not be reached",
				slog.String("request", on.id), slog.String("dependency", name), slog.Any("err", err))
		}
		return struct{}{}, err
	})
	return err
}

// probe is the answer to /livez and /readyz.
type probe struct {
	Status string `json:"status"`
}

// live answers GET /livez: the process serves requests.
func (a *api) live(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, probe{"ok"})
}

// ready answers GET /readyz: requests may be sent to this process. Redis only speeds things up,
// so it is not checked.
func (a *api) ready(w http.ResponseWriter, r *http.Request) error {
	if a.Health.Stopping != nil && a.Health.Stopping() {
		return reply(w, http.StatusServiceUnavailable, probe{"stopping"})
	}
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if a.checkOne(ctx, exchangeOf(r), "database", &a.dependencies.database, a.Health.Database) != nil {
		return reply(w, http.StatusServiceUnavailable, probe{"unavailable"})
	}
	return reply(w, http.StatusOK, probe{"ok"})
}
