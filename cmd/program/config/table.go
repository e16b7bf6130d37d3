package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// draft is a configuration being built.
type draft struct {
	Config
	confirmations map[chain.ID]uint64 // from the setting; chains may have their own
}

// table declares every setting once, bound to d. The reference, the flags, the environment and
// the file all follow from it.
func (d *draft) table() []*setting {
	return slices.Concat(d.places(), d.chains(), d.delivery(), d.nodes(), d.serving(), d.limits(), d.quotas(), d.canceling(), d.keeping(), d.archiving(), d.auditing())
}

func (d *draft) places() []*setting {
	return []*setting{
		addresses("listen", &d.Listen, "127.0.0.1:8420",
			"The address on which the API listens. An address other than loopback requires API keys (`watchtower keys create`) or `open-access`."),
		toggles("profiling", &d.Profiling, false,
			"Whether operators may take profiles at `/debug/pprof/` of `metrics-listen`."),
		toggles("console", &d.Console, true,
			"Whether the operators' console, for browsers, is served at `/console/` of `metrics-listen`. Once there are API keys, people sign in with one: the scope `audit` looks, `admin` acts."),
		toggles("open-access", &d.OpenAccess, false,
			"Whether requests need no API key, even if there are keys, and on every listen address. Only for a service that something else protects from strangers."),
		addresses("metrics-listen", &d.MetricsListen, "127.0.0.1:8421",
			"The address on which `/metrics` and the operators' routes (`/admin/…`) listen; another address than `listen`. On an address other than loopback the operators' routes require an API key with the scope `admin`."),
		d.store("store", &d.Store, "embedded:./watchtower-data", "", storeForms,
			"The place of the log of events and of the signed bytes, which must never be lost. In the file, quote `\"embedded::memory:\"`. "+
				"An EventStoreDB keeps the log, and the database keeps the signed bytes; see [eventstoredb.md](../howto/eventstoredb.md)."),
		d.store("database", &d.Database, "", "the value of `store`", databaseForms,
			"The place of the read models and the due queue, which can be rebuilt from the log. It must not outlive a store in memory. "+
				"With an EventStoreDB it must be a Postgres."),
		d.redis(),
		{
			path: "vault-key-file", kind: text, absent: "`DIR/vault.key` beside an embedded store, `./watchtower-data/vault.key` with Postgres or EventStoreDB, none in memory",
			allowed: "a path",
			doc: "The file with the key that seals the signed bytes: 32 secret bytes in hex. " +
				"Further lines hold earlier keys, which open the bytes that they sealed. The key is never in the database. " +
				"All replicas need the same key; without it no stored transaction can be sent.",
			show: func() string { return d.VaultKeyFile },
			read: func(text string) error {
				switch {
				case isKey(text):
					return errors.New("is a key, but must be the path of a file that holds it")
				case strings.ContainsRune(text, 0):
					return errors.New("has a NUL")
				}
				d.VaultKeyFile = text
				return nil
			},
		},
	}
}

func (d *draft) store(path string, value *Store, standard, absent, forms, doc string) *setting {
	return &setting{
		path: path, kind: text, standard: standard, absent: absent, allowed: forms, doc: doc,
		show: func() string { return value.String() },
		read: func(text string) (err error) {
			s, err := parseStore(text)
			if err == nil {
				*value = s
			}
			return err
		},
	}
}

// isKey reports whether text is 32 bytes in hex.
func isKey(text string) bool {
	text = strings.TrimPrefix(text, "0x")
	return len(text) == 64 && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

func (d *draft) chains() []*setting {
	return []*setting{
		{
			path: "chains", kind: text, absent: "none; `serve` needs a chain",
			allowed: "`42431=http://a,http://b;1=http://c`",
			doc: "The chains that are served, each with its nodes' JSON-RPC URLs. " +
				"The file may have a list instead, with more options (docs/reference/configuration.md). " +
				"If a URL has a comma or semicolon, percent-encode it, or put the URL in the file's list.",
			list: func(f *file, n ast.Node) { d.Chains = f.chains(n) },
			show: func() string { return showChains(d.Chains) },
			read: func(text string) error {
				chains, err := parseChains(text)
				if err == nil {
					d.Chains = chains
				}
				return err
			},
		},
		{
			path: "confirmations", kind: text, absent: "the value in the list of chains, else 0",
			allowed: "`42431=0;31337=12`, each from 0 to 10000",
			doc: "How many blocks make a block of a chain final, with the block itself counted; 0 trusts the node's `finalized` tag. " +
				"A value here overrides the value in the list of chains.",
			show: func() string { return showConfirmations(d.Chains) },
			read: func(text string) (err error) {
				blocks, err := parseConfirmations(text)
				if err == nil {
					d.confirmations = blocks
				}
				return err
			},
		},
		choices("grouping", &d.Grouping, string(commands.GroupExplicit),
			"Which transactions have a group. `explicit`: transactions whose nonce key has the NKG1 format. `all`: all transactions, also with the account's own nonce (key 0, the only one on Ethereum) and with the expiring nonce key.",
			[]string{"explicit", "all"}, []commands.Grouping{commands.GroupExplicit, commands.GroupAll}),
		durations("expiring-window", &d.ExpiringWindow, 30*time.Second, time.Second, time.Hour,
			"How long before its `validBefore` the chain accepts a transaction with an expiring nonce (TIP-1009: 30 s, TIP-1093: 300 s). The transaction becomes eligible then."),
		durations("max-valid-after", &d.MaxValidAfter, 400*24*time.Hour, time.Second, 100*365*24*time.Hour,
			"How far in the future a transaction's `validAfter` may be; for an expiring transaction, the time from which it may be sent. A transaction further ahead is refused with `valid-after-too-far`."),
	}
}

func (d *draft) delivery() []*setting {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	plan, standard := &d.Scheduler.Schedule, tx.DefaultSchedule()
	return []*setting{
		durations("scheduler.poll-interval", &d.Scheduler.PollInterval, s, 10*ms, m,
			"The longest pause between two reads of the due queue. Work that this process schedules wakes it at once."),
		durations("scheduler.lease-ttl", &d.Scheduler.LeaseTTL, 3*s, 500*ms, 5*m,
			"How long a worker holds a leased transaction. After a crash another worker takes it over when this time has passed."),
		numbers("scheduler.max-concurrency", &d.Scheduler.MaxConcurrency, 64, 1, 4096,
			"How many attempts of each chain run at once in this process."),
		durations("scheduler.retry-min", &plan.RetryMin, standard.RetryMin, 10*ms, m,
			"The backoff after a refusal or a lost response, near eligibility: up to twice this value, by a jitter derived from the hash."),
		durations("scheduler.retry-max", &plan.RetryMax, standard.RetryMax, 10*ms, 10*m,
			"The longest backoff after refusals and lost responses."),
		durations("scheduler.rebroadcast-min", &plan.RebroadcastMin, standard.RebroadcastMin, 100*ms, 10*m,
			"The pause before bytes that a node accepted are sent again, because pools can drop transactions."),
		durations("scheduler.rebroadcast-max", &plan.RebroadcastMax, standard.RebroadcastMax, 100*ms, h,
			"The longest pause before accepted bytes are sent again, after it has backed off."),
		durations("scheduler.expiry-soon-window", &plan.ExpirySoonWindow, standard.ExpirySoonWindow, 0, 30*24*h,
			"For this long before a transaction's expiry, its pauses are limited by `scheduler.expiry-soon-retry-max`."),
		durations("scheduler.expiry-soon-retry-max", &plan.ExpirySoonRetryMax, standard.ExpirySoonRetryMax, 10*ms, 10*m,
			"The longest pause of a transaction that expires soon."),
		numbers("scheduler.window", &d.Scheduler.Window, 16, 1, 1024,
			"How many transactions of one sender and nonce key are sent to nodes; later transactions wait until the nonce advances."),
		durations("scheduler.lead", &d.Scheduler.Lead, 0, 0, 10*m,
			"How long before `validAfter` bytes may be sent to nodes that hold future transactions (Tempo's pool accepts 2m). With 0 the bytes stay secret until `validAfter`."),
		durations("watcher.poll-interval", &d.Watcher.PollInterval, s, 50*ms, m,
			"The longest pause between two queries of the nodes' heads. Once the block time is known, nodes are queried when a block is due."),
		toggles("watcher.use-websocket", &d.Watcher.UseWebSocket, true,
			"Whether heads are also received by subscription. An endpoint without a WebSocket URL is tried at its own URL with `ws` or `wss`; polling continues beside it."),
		numbers("broadcaster.fanout", &d.Broadcaster.Fanout, 2, 1, endpointsMax,
			"How many endpoints of a chain receive the bytes in one attempt."),
		durations("broadcaster.timeout", &d.Broadcaster.Timeout, 2*s, 50*ms, m,
			"How long one endpoint may take to respond. It must be shorter than nine tenths of `scheduler.lease-ttl`, the deadline of an attempt."),
		durations("owner.lease-ttl", &d.Owner.LeaseTTL, 3*s, 500*ms, m,
			"How long a replica holds a projector, process manager or watcher without renewing its lease. After a crash another replica takes over when this time has passed."),
		durations("owner.lease-renew", &d.Owner.LeaseRenew, s, 50*ms, 20*s,
			"The pause between two renewals of a lease: at most a third of `owner.lease-ttl`."),
	}
}

func (d *draft) serving() []*setting {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	return []*setting{
		numbers("api.max-body-bytes", &d.API.MaxBodyBytes, 1<<20, 1<<10, 64<<20,
			"The largest request body, in bytes."),
		numbers("api.max-batch", &d.API.MaxBatch, 1000, 1, 10_000,
			"How many transactions one request may submit."),
		numbers("api.max-transaction-bytes", &d.API.MaxTransactionBytes, 128<<10, 1<<10, 1<<20,
			"The largest raw transaction, in bytes. Nodes' pools accept at most 128 KiB."),
		numbers("api.max-header-bytes", &d.API.MaxHeaderBytes, 8<<10, 1<<10, 1<<20,
			"The longest request line with headers, in bytes; 4 KiB more are tolerated."),
		numbers("api.max-connections", &d.API.MaxConnections, 1024, 1, 65_536,
			"How many connections are served at once; further connections wait to be accepted. One address gets at most half of them, unless it is this machine's address or one of `trusted-proxies`."),
		durations("api.header-timeout", &d.API.HeaderTimeout, 5*s, 100*ms, m,
			"How long a request's headers may take to arrive."),
		durations("api.read-timeout", &d.API.ReadTimeout, 15*s, 100*ms, 10*m,
			"How long a request may take to arrive."),
		durations("api.write-timeout", &d.API.WriteTimeout, 30*s, 100*ms, 10*m,
			"The longest time from a request's headers to the end of its response: at least `api.read-timeout`."),
		durations("api.work-timeout", &d.API.WorkTimeout, 10*s, 100*ms, 10*m,
			"How long the processing of a request may take, between its arrival and its response; less when `api.write-timeout` is near."),
		durations("api.idle-timeout", &d.API.IdleTimeout, m, 100*ms, 10*m,
			"How long a connection may stay open without a request."),
		toggles("api.rpc", &d.API.RPC, true,
			"Whether `/rpc` is served: JSON-RPC for wallets, which also lets clients read the chain through its nodes."),
		origins("api.origins", &d.API.Origins,
			"The web origins whose pages may use the API from a browser (CORS). `*` requires API keys: with `open-access`, or before the first key, the service does not start with it."),
		hosts("api.hosts", &d.API.Hosts,
			"The names, without ports, under which clients and monitors reach this process where requests need no API key. Such listeners answer only to IP addresses, `localhost` and these names. So a page whose own name was made to resolve to this process is refused (DNS rebinding)."),
		durations("shutdown-grace", &d.ShutdownGrace, 20*s, 500*ms, 10*m,
			"How long a shutdown waits for running requests and attempts: at least `scheduler.lease-ttl`."),
		choices("log.level", &d.Log.Level, "info", "The lowest level that is logged.",
			[]string{"debug", "info", "warn", "error"},
			[]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}),
		choices("log.format", &d.Log.Format, string(JSON), "The format of a log line.",
			[]string{"json", "text"}, []LogFormat{JSON, Text}),
		toggles("log.facts", &d.Log.Facts, false,
			"Whether a line is logged at `info`, instead of `debug`, for each recorded fact of the ordinary course: of transactions, intents and lanes."),
		{
			path: "tracing.endpoint", kind: text, absent: "none: nothing is traced", allowed: "`http://host:port` or `https://…`",
			doc: "The OpenTelemetry collector that receives traces, by OTLP over HTTP. " +
				"The exporter also reads `OTEL_EXPORTER_OTLP_HEADERS` (for credentials, which must not be in this URL) and similar variables.",
			show: func() string { return d.Tracing.Endpoint },
			read: func(text string) error {
				u, err := url.Parse(text)
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
					return fmt.Errorf("%s is not an http or https URL without user and query", quote(text))
				}
				d.Tracing.Endpoint = text
				return nil
			},
		},
		numbers("tracing.percent", &d.Tracing.Percent, 100, 0, 100,
			"The percentage of transactions that are traced. Their hashes decide, so that all replicas trace the same transactions."),
	}
}

func (d *draft) keeping() []*setting {
	const m, h, year = time.Minute, time.Hour, 365 * 24 * time.Hour
	return []*setting{
		durations("retention.bytes", &d.Retention.Bytes, 24*h, 0, 10*year,
			"How long signed bytes are kept after their transaction is settled."),
		durations("retention.rows", &d.Retention.Rows, 0, 0, 10*year,
			"How long rows of the read models are kept after the bytes are erased; 0 keeps them for ever. Events are always kept."),
		durations("retention.sweep", &d.Retention.Sweep, h, m, 7*24*h,
			"The pause between two sweeps for bytes that no transaction names."),
	}
}
