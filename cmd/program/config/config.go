// Package config is the configuration of the watchtower: its settings, their valid values, and
// the origin of each value in force.
//
// A flag overrides the environment, the environment overrides the file, and the file overrides
// the default. Every given value is checked, overridden or not, and all problems are reported at
// once.
package config

import (
	"log/slog"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/retention"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Config is a checked configuration. The reference in docs/reference/configuration.md describes each
// value; it is generated from the same table that fills this struct.
type Config struct {
	Listen        string
	MetricsListen string
	OpenAccess    bool // no API key is needed, on any listen address
	Console       bool // serve the console on the internal listener
	Profiling     bool // serve CPU and memory profiles on the internal listener
	Store         Store
	Database      Store  // the store, unless set otherwise
	Redis         Secret // the Redis URL; zero for none
	// VaultKeyFile holds the vault's master key. With a store in memory it may be empty: the key
	// then lives as long as the store.
	VaultKeyFile string

	Chains         []Chain
	Grouping       commands.Grouping
	ExpiringWindow time.Duration
	MaxValidAfter  time.Duration

	Scheduler   Scheduler
	Watcher     Watcher
	Broadcaster Broadcaster
	Endpoints   Endpoints
	Owner       Owner
	API         API
	Rates       Rates
	Idempotency Idempotency
	Quotas      Quotas
	Retention   retention.Settings
	Cancel      Cancel
	Snapshots   Snapshots
	Audit       Audit
	Archive     Archive
	// Deployment is this deployment's name in owners' signatures; empty derives a name from the
	// vault's key.
	Deployment string

	Log           Log
	Tracing       Tracing
	ShutdownGrace time.Duration
}

// Scheduler configures the times and number of attempts.
type Scheduler struct {
	PollInterval   time.Duration
	LeaseTTL       time.Duration
	MaxConcurrency int
	Schedule       tx.Schedule
	Window         int
	Lead           time.Duration
}

// Watcher configures how the chain's head is followed.
type Watcher struct {
	PollInterval time.Duration
	UseWebSocket bool
}

// Broadcaster configures how bytes are sent to nodes.
type Broadcaster struct {
	Fanout  int
	Timeout time.Duration
}

// Owner configures the leases of work that one replica does at a time.
type Owner struct {
	LeaseTTL   time.Duration
	LeaseRenew time.Duration
}

// API holds the limits of the API's server.
type API struct {
	MaxBodyBytes        int64
	MaxBatch            int
	MaxTransactionBytes int
	MaxHeaderBytes      int
	MaxConnections      int
	HeaderTimeout       time.Duration
	ReadTimeout         time.Duration
	WorkTimeout         time.Duration
	WriteTimeout        time.Duration
	IdleTimeout         time.Duration
	RPC                 bool     // whether /rpc is served
	Origins             []string // allowed to use the API from a browser
	Hosts               []string // host names under which clients reach listeners that need no key
}

// Log configures the log's level and format.
type Log struct {
	Level  slog.Level
	Format LogFormat
	Facts  bool // every recorded fact is logged at info
}

// Tracing configures where traces go.
type Tracing struct {
	Endpoint string // empty: tracing is off
	Percent  int    // share of transactions traced
}

// LogFormat is the format of a log line.
type LogFormat string

const (
	JSON LogFormat = "json"
	Text LogFormat = "text"
)

// CheckServe refuses a configuration that serving cannot use: it needs a chain.
func (c Config) CheckServe() error {
	if len(c.Chains) > 0 {
		return nil
	}
	return Problems{{
		Origin: "default", Setting: "chains",
		Text: "no chain to serve: set WATCHTOWER_CHAINS, for instance to 42431=http://127.0.0.1:8545",
	}}
}

// CheckAccess refuses a configuration that lets strangers in. Beyond this machine the API
// listens only with API keys, or with OpenAccess. Without keys, web pages of all origins count
// as strangers, since their browsers run on this machine.
func (c Config) CheckAccess(keys bool) error {
	if (!keys || c.OpenAccess) && slices.Contains(c.API.Origins, anyOrigin) {
		return Problems{{
			Origin: "serve", Setting: "api.origins",
			Text: "must not be * while requests need no API key: any page in a browser that reaches the service could use it. " +
				"List the origins, or make a key (watchtower keys create) and leave open-access at false",
		}}
	}
	if keys || c.OpenAccess || IsLoopback(c.Listen) {
		return nil
	}
	return Problems{{
		Origin: "serve", Setting: "listen",
		Text: c.Listen + " can be reached from other machines, and there is no API key yet, so anybody could submit and read. " +
			"Make a key (watchtower keys create), listen on 127.0.0.1, or set open-access to true if something in front of the service keeps strangers out",
	}}
}

// Setting is one value in force, for display.
type Setting struct {
	Name   string // its path in the file
	Value  string // without secrets
	Origin string // "default", file:line, "env NAME" or "flag --name"
}
