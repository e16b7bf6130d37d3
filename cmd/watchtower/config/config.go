// Package config is the configuration of the watchtower: what may be set, to
// what, and where each value came from.
//
// A value is the default, unless the file says otherwise, unless the environment
// does, unless a flag does. Every value that is given is checked, also one that
// another overrides, and all problems are reported at once.
package config

import (
	"log/slog"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/retention"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Config is a checked configuration. The reference in docs/configuration.md says
// what each value means; it is made from the same table that fills this.
type Config struct {
	Listen        string
	MetricsListen string
	OpenAccess    bool // no API key is needed, wherever the API listens
	Profiling     bool // CPU and memory may be looked into on the internal listener
	Store         Store
	Database      Store  // the store, unless it was set
	Redis         Secret // the accelerator's URL; zero for none
	// VaultKeyFile is where the vault's master key is. Empty with a store in
	// memory: a key as short-lived as the store will do.
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
	// Deployment is this deployment's name in what owners sign; empty is one that
	// follows from the vault's key.
	Deployment string

	Log           Log
	Tracing       Tracing
	ShutdownGrace time.Duration
}

// Scheduler says when and how many attempts are made.
type Scheduler struct {
	PollInterval   time.Duration
	LeaseTTL       time.Duration
	MaxConcurrency int
	Schedule       tx.Schedule
	Window         int
	Lead           time.Duration
}

// Watcher says how heads are seen.
type Watcher struct {
	PollInterval time.Duration
	UseWebSocket bool
}

// Broadcaster says how bytes are handed to nodes.
type Broadcaster struct {
	Fanout  int
	Timeout time.Duration
}

// Owner says how long what one replica does at a time stays that replica's.
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
	Origins             []string // that may use the API from a browser
	Hosts               []string // names that clients reach listeners by which need no key
}

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level
	Format LogFormat
}

// Tracing says where traces go.
type Tracing struct {
	Endpoint string // empty: nowhere
	Percent  int    // of the transactions
}

// LogFormat is how a line of the log is written.
type LogFormat string

const (
	JSON LogFormat = "json"
	Text LogFormat = "text"
)

// CheckServe says what serving needs beyond what every command needs: a chain.
func (c Config) CheckServe() error {
	if len(c.Chains) > 0 {
		return nil
	}
	return Problems{{
		Origin: "default", Setting: "chains",
		Text: "no chain to serve: set WATCHTOWER_CHAINS, for instance to 42431=http://127.0.0.1:8545",
	}}
}

// CheckAccess refuses to let strangers in: beyond this machine the API listens only
// with API keys, or when it was said that none are wanted; and without keys the pages
// of all origins are strangers, whose browsers are on this machine.
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

// Setting is one value in force, for people to read.
type Setting struct {
	Name   string // its path in the file
	Value  string // with secrets left out
	Origin string // "default", file:line, "env NAME" or "flag --name"
}
