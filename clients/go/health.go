package watchtower

import (
	"context"
	"net/http"
)

// Health is the state of the service.
type Health struct {
	Status  string `json:"status"` // ok or degraded
	Service string `json:"service"`
	Version string `json:"version"`
	Build   struct {
		GitSHA    string `json:"gitSha"`
		Timestamp string `json:"buildTimestamp"`
	} `json:"build"`
	Now           int64    `json:"now"`
	StartedAt     int64    `json:"startedAt"`
	UptimeSeconds int64    `json:"uptimeSeconds"`
	Deployment    string   `json:"deployment"` // the service's name in messages that owners sign to cancel groups
	Chains        []uint64 `json:"chains"`
	RPCEndpoints  int      `json:"rpcEndpoints"`

	Scheduler struct {
		PollMillis               int64   `json:"pollIntervalMs"`
		LeaseSeconds             float64 `json:"leaseTtlSeconds"`
		MaxConcurrency           int     `json:"maxConcurrency"`
		RetryMinMillis           int64   `json:"retryMinMs"`
		RetryMaxMillis           int64   `json:"retryMaxMs"`
		ExpirySoonSeconds        float64 `json:"expirySoonWindowSeconds"`
		ExpirySoonRetryMaxMillis int64   `json:"expirySoonRetryMaxMs"`
	} `json:"scheduler"`
	Watcher struct {
		PollMillis   int64 `json:"pollIntervalMs"`
		UseWebsocket bool  `json:"useWebsocket"`
	} `json:"watcher"`
	Broadcaster struct {
		Fanout        int   `json:"fanout"`
		TimeoutMillis int64 `json:"timeoutMs"`
	} `json:"broadcaster"`
	API struct {
		MaxBodyBytes int64 `json:"maxBodyBytes"`
	} `json:"api"`
	Dependencies map[string]Dependency `json:"dependencies"` // database, and redis if one is set

	// Only without API keys, or for a key with the scope read or audit.
	Endpoints []Endpoint `json:"endpoints"`
	Heads     []Head     `json:"heads"`
	Readers   []Reader   `json:"readers"`
}

// Dependency is a system that the service needs.
type Dependency struct {
	OK bool `json:"ok"`
}

// Endpoint is the state of one node, as seen by the process that answers.
type Endpoint struct {
	ChainID       uint64  `json:"chainId"`
	Name          string  `json:"name"`
	Healthy       bool    `json:"healthy"` // it is in rotation
	Score         float64 `json:"score"`   // from 0 to 1; higher is better
	Head          uint64  `json:"head"`
	State         string  `json:"state"` // healthy, or why it is out of rotation
	Breaker       string  `json:"breaker"`
	Reading       bool    `json:"reading"` // the chain is read from this endpoint
	Lag           uint64  `json:"lag"`
	Lead          uint64  `json:"lead"`
	LatencyMillis float64 `json:"latencyMs"` // moving average
	ErrorRate     float64 `json:"errorRate"` // moving average of the share of failed calls
	InFlight      int     `json:"inFlight"`
	MaxInFlight   int     `json:"maxInFlight"`
	Rate          *struct {
		PerSecond float64 `json:"perSecond"`
		Burst     int     `json:"burst"`
		Left      float64 `json:"left"`
	} `json:"rate"` // nil without a limit
	Daily *struct {
		Calls int64 `json:"calls"`
		Left  int64 `json:"left"`
	} `json:"daily"` // nil without a limit
	Trips          int    `json:"trips"`          // times that the circuit breaker has opened
	Contradictions int    `json:"contradictions"` // answers that contradicted themselves or most other endpoints
	Differences    int    `json:"differences"`    // answers that differed where no majority could decide
	Withheld       int    `json:"withheld"`       // calls that the budget forbade
	Problem        string `json:"problem"`
	LastError      string `json:"lastError"`
	LastErrorAt    int64  `json:"lastErrorAt"`
}

// Head is a chain's newest and newest final block.
type Head struct {
	ChainID uint64 `json:"chainId"`
	Head    uint64 `json:"head"`
	Final   uint64 `json:"final"`
}

// Reader is a reader of the log and how far it is behind.
type Reader struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"`
	Head     uint64 `json:"head"`
	Lag      uint64 `json:"lag"`
	Problem  string `json:"problem"` // why it cannot process the next event
}

// Health returns the state of the service. A degraded service is no error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	r := get("/health", nil)
	r.alsoOK = http.StatusServiceUnavailable
	err := c.call(ctx, r, &h)
	return h, err
}

// Live returns an error unless the process runs.
func (c *Client) Live(ctx context.Context) error { return c.probe(ctx, "/livez") }

// Ready returns an error unless the process is ready for requests.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

// probe asks once: the caller wants to know how things are now.
func (c *Client) probe(ctx context.Context, path string) error {
	r := get(path, nil)
	r.once = true
	return c.call(ctx, r, &struct{ Status string }{})
}
