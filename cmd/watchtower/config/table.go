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
	"github.com/tempo-watchtower/watchtower/domain/tx"
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
			"Where the API listens. Anything but a loopback address takes API keys (`watchtower keys create`) or `open-access`."),
		toggles("profiling", &d.Profiling, false,
			"Whether the operator may take profiles at `/debug/pprof/` of `metrics-listen`."),
		toggles("open-access", &d.OpenAccess, false,
			"Whether requests need no API key, also when there are keys, and wherever the API listens. Only for a service that something else keeps strangers from."),
		addresses("metrics-listen", &d.MetricsListen, "127.0.0.1:8421",
			"Where `/metrics` and the operator's routes (`/admin/…`) listen; another address than `listen`. Beyond loopback the latter take an API key with the scope `admin`."),
		d.store("store", &d.Store, "embedded:./watchtower-data", "", storeForms,
			"Where the log of events and the signed bytes are kept: what must never be lost. In the file, quote `\"embedded::memory:\"`. "+
				"An EventStoreDB keeps the log, and the database the signed bytes; see [eventstoredb.md](eventstoredb.md)."),
		d.store("database", &d.Database, "", "where the store is", databaseForms,
			"Where read models and the due queue are kept: what can be rebuilt from the log. It may not outlive a store in memory, "+
				"and is a Postgres beside an EventStoreDB."),
		d.redis(),
		{
			path: "vault-key-file", kind: text, absent: "`DIR/vault.key` beside an embedded store, `./watchtower-data/vault.key` with Postgres or EventStoreDB, none in memory",
			allowed: "a path",
			doc: "The file with the key that signed bytes are sealed under: 32 secret bytes in hex; in further lines, keys that were it before, which open what they sealed. It is never in the database. " +
				"All replicas need the same key; without it no kept transaction can be sent.",
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
			path: "chains", kind: text, absent: "none; `serve` needs one",
			allowed: "`42431=http://a,http://b;1=http://c`",
			doc: "The chains that are served, each with its nodes' JSON-RPC URLs. In the file also a list, which may say more (docs/configuration.md). " +
				"A URL with a comma or semicolon has them percent-encoded or is put in the file's list.",
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
			path: "confirmations", kind: text, absent: "what the list of chains says, else 0",
			allowed: "`42431=0;31337=12`, each from 0 to 10000",
			doc: "How many blocks, the including one counted, make a block of a chain final; 0 trusts the node's `finalized` tag. " +
				"Said here, it goes before what the list of chains says of the same chain.",
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
			"Which transactions have a group: those whose nonce key has the NKG1 format, or all, also those with the account's own nonce (key 0, the only one on Ethereum) and with the expiring nonce key.",
			[]string{"explicit", "all"}, []commands.Grouping{commands.GroupExplicit, commands.GroupAll}),
		durations("expiring-window", &d.ExpiringWindow, 30*time.Second, time.Second, time.Hour,
			"How long before its `validBefore` the chain takes a transaction with an expiring nonce; it becomes eligible then (TIP-1009: 30 s, TIP-1093: 300 s)."),
		durations("max-valid-after", &d.MaxValidAfter, 400*24*time.Hour, time.Second, 100*365*24*time.Hour,
			"How far ahead a transaction's `validAfter` may be, or the time from which an expiring one may be sent. One further ahead is refused with `valid-after-too-far`."),
	}
}

func (d *draft) delivery() []*setting {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	plan, standard := &d.Scheduler.Schedule, tx.DefaultSchedule()
	return []*setting{
		durations("scheduler.poll-interval", &d.Scheduler.PollInterval, s, 10*ms, m,
			"The longest pause before the due queue is asked again; what this process schedules wakes it at once."),
		durations("scheduler.lease-ttl", &d.Scheduler.LeaseTTL, 3*s, 500*ms, 5*m,
			"How long a leased transaction is one worker's. After a crash another takes it up when this has passed."),
		numbers("scheduler.max-concurrency", &d.Scheduler.MaxConcurrency, 64, 1, 4096,
			"How many attempts of each chain run at once in this process."),
		durations("scheduler.retry-min", &plan.RetryMin, standard.RetryMin, 10*ms, m,
			"The pause after a refusal or a lost answer, near eligibility: up to twice this, by a jitter drawn from the hash."),
		durations("scheduler.retry-max", &plan.RetryMax, standard.RetryMax, 10*ms, 10*m,
			"The longest such pause, once it has backed off."),
		durations("scheduler.rebroadcast-min", &plan.RebroadcastMin, standard.RebroadcastMin, 100*ms, 10*m,
			"The pause before bytes that a node took are sent again: pools forget."),
		durations("scheduler.rebroadcast-max", &plan.RebroadcastMax, standard.RebroadcastMax, 100*ms, h,
			"The longest such pause, once it has backed off."),
		durations("scheduler.expiry-soon-window", &plan.ExpirySoonWindow, standard.ExpirySoonWindow, 0, 30*24*h,
			"So long before its expiry a transaction's pauses are capped by `scheduler.expiry-soon-retry-max`."),
		durations("scheduler.expiry-soon-retry-max", &plan.ExpirySoonRetryMax, standard.ExpirySoonRetryMax, 10*ms, 10*m,
			"The longest pause of a transaction that expires soon."),
		numbers("scheduler.window", &d.Scheduler.Window, 16, 1, 1024,
			"How many transactions of one sender and nonce key go to nodes; those behind wait for the nonce to advance."),
		durations("scheduler.lead", &d.Scheduler.Lead, 0, 0, 10*m,
			"How long before `validAfter` bytes may be handed to nodes that hold future transactions (Tempo's pool takes 2m). At 0 they stay secret until then."),
		durations("watcher.poll-interval", &d.Watcher.PollInterval, s, 50*ms, m,
			"How often at least nodes are asked for their head. As soon as the pace of blocks is known they are asked when one is due."),
		toggles("watcher.use-websocket", &d.Watcher.UseWebSocket, true,
			"Whether heads are also subscribed to. An endpoint without a WebSocket URL is tried at its own URL with `ws` or `wss`; polling goes on underneath."),
		numbers("broadcaster.fanout", &d.Broadcaster.Fanout, 2, 1, endpointsMax,
			"How many endpoints of a chain one attempt hands the bytes to."),
		durations("broadcaster.timeout", &d.Broadcaster.Timeout, 2*s, 50*ms, m,
			"How long one endpoint may take to answer. Shorter than nine tenths of `scheduler.lease-ttl`, the deadline of an attempt."),
		durations("owner.lease-ttl", &d.Owner.LeaseTTL, 3*s, 500*ms, m,
			"How long a projector, process manager or watcher stays one replica's without renewal. After a crash another takes it up when this has passed."),
		durations("owner.lease-renew", &d.Owner.LeaseRenew, s, 50*ms, 20*s,
			"The pause between renewals: at most a third of `owner.lease-ttl`."),
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
			"The largest raw transaction, in bytes. Nodes' pools take none over 128 KiB."),
		numbers("api.max-header-bytes", &d.API.MaxHeaderBytes, 8<<10, 1<<10, 1<<20,
			"The longest request line with headers, in bytes; 4 KiB more are let pass."),
		numbers("api.max-connections", &d.API.MaxConnections, 1024, 1, 65_536,
			"How many connections are served at once; more wait to be accepted. One address, unless it is this machine's or one of `trusted-proxies`, gets half of them at most."),
		durations("api.header-timeout", &d.API.HeaderTimeout, 5*s, 100*ms, m,
			"How long a request's headers may take to arrive."),
		durations("api.read-timeout", &d.API.ReadTimeout, 15*s, 100*ms, 10*m,
			"How long a request may take to arrive."),
		durations("api.write-timeout", &d.API.WriteTimeout, 30*s, 100*ms, 10*m,
			"How long from a request's headers to the end of its answer: at least `api.read-timeout`."),
		durations("api.work-timeout", &d.API.WorkTimeout, 10*s, 100*ms, 10*m,
			"How long may be worked on a request between its arrival and its answer; less when `api.write-timeout` is near."),
		durations("api.idle-timeout", &d.API.IdleTimeout, m, 100*ms, 10*m,
			"How long a connection may be kept without a request."),
		toggles("api.rpc", &d.API.RPC, true,
			"Whether `/rpc` is served: JSON-RPC for wallets, which also lets clients read the chain through its nodes."),
		origins("api.origins", &d.API.Origins,
			"The web origins whose pages may use the API from a browser (CORS). `*` takes API keys: with `open-access`, or before the first key, the service does not start with it."),
		hosts("api.hosts", &d.API.Hosts,
			"The names, without ports, that clients and monitors reach this process by where requests need no API key. Such listeners answer to IP addresses, `localhost` and these names only; a page whose name was made to lead here is refused."),
		durations("shutdown-grace", &d.ShutdownGrace, 20*s, 500*ms, 10*m,
			"How long a stop waits for requests and attempts under way: at least `scheduler.lease-ttl`."),
		choices("log.level", &d.Log.Level, "info", "The least level that is logged.",
			[]string{"debug", "info", "warn", "error"},
			[]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}),
		choices("log.format", &d.Log.Format, string(JSON), "How a line of the log is written.",
			[]string{"json", "text"}, []LogFormat{JSON, Text}),
		{
			path: "tracing.endpoint", kind: text, absent: "none: nothing is traced", allowed: "`http://host:port` or `https://…`",
			doc: "The OpenTelemetry collector that gets traces, by OTLP over HTTP. The exporter also heeds `OTEL_EXPORTER_OTLP_HEADERS` " +
				"(for credentials, which have no place in this URL) and its like.",
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
			"How many of a hundred transactions are traced; their hashes decide which, so that all replicas agree."),
	}
}

func (d *draft) keeping() []*setting {
	const m, h, year = time.Minute, time.Hour, 365 * 24 * time.Hour
	return []*setting{
		durations("retention.bytes", &d.Retention.Bytes, 24*h, 0, 10*year,
			"How long signed bytes are kept after their transaction is settled."),
		durations("retention.rows", &d.Retention.Rows, 0, 0, 10*year,
			"How long rows of the read models are kept after the bytes were erased; 0 keeps them for ever. Events always stay."),
		durations("retention.sweep", &d.Retention.Sweep, h, m, 7*24*h,
			"The pause between sweeps for bytes that no transaction names."),
	}
}
