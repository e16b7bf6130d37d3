package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/retention"
	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// input is a test's arguments of Resolve.
type input struct {
	file  string // content of w.yaml, named by --config when not empty
	env   []string
	flags []string
}

func (in input) resolve(t testing.TB) (Config, []Setting, error) {
	t.Helper()
	flags := pflag.NewFlagSet("watchtower", pflag.ContinueOnError)
	Flags(flags)
	args := in.flags
	if in.file != "" {
		args = append([]string{"--config=w.yaml"}, args...)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Resolve(flags, in.env, func(name string) ([]byte, error) {
		if name != "w.yaml" {
			return nil, os.ErrNotExist
		}
		return []byte(in.file), nil
	})
}

func (in input) mustResolve(t testing.TB) (Config, map[string]Setting) {
	t.Helper()
	c, settings, err := in.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Setting{}
	for _, s := range settings {
		byName[s.Name] = s
	}
	return c, byName
}

func TestDefaults(t *testing.T) {
	store := Store{Engine: Embedded, Dir: "watchtower-data"}
	want := Config{
		Listen: "127.0.0.1:8420", MetricsListen: "127.0.0.1:8421", Console: true,
		Store: store, Database: store, VaultKeyFile: "watchtower-data/vault.key",
		Grouping: commands.GroupExplicit, ExpiringWindow: 30 * time.Second, MaxValidAfter: 400 * 24 * time.Hour,
		Scheduler: Scheduler{
			PollInterval: time.Second, LeaseTTL: 3 * time.Second, MaxConcurrency: 64, Window: 16,
			Schedule: tx.Schedule{
				RetryMin: 250 * time.Millisecond, RetryMax: 5 * time.Second,
				RebroadcastMin: 5 * time.Second, RebroadcastMax: 15 * time.Second,
				ExpirySoonWindow: time.Hour, ExpirySoonRetryMax: 5 * time.Second,
			},
		},
		Watcher:     Watcher{PollInterval: time.Second, UseWebSocket: true},
		Broadcaster: Broadcaster{Fanout: 2, Timeout: 2 * time.Second},
		Endpoints:   Endpoints{HeadTimeout: 2500 * time.Millisecond, CallTimeout: 8 * time.Second, MaxLag: 10, Agree: 2, Budget: Budget{Concurrency: 64}},
		Owner:       Owner{LeaseTTL: 3 * time.Second, LeaseRenew: time.Second},
		API: API{
			MaxBodyBytes: 1 << 20, MaxBatch: 1000, MaxTransactionBytes: 128 << 10, MaxHeaderBytes: 8 << 10, MaxConnections: 1024,
			HeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WorkTimeout: 10 * time.Second,
			WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, RPC: true,
		},
		Rates:         Rates{Address: Rate{Burst: 2000}, Key: Rate{PerSecond: 1000, Burst: 10_000}, Clients: 65_536},
		Idempotency:   Idempotency{Keep: 24 * time.Hour, MaxRequests: 100_000},
		Quotas:        Quotas{Transactions: 100_000, Bytes: 256 << 20, Streams: 64, Requests: 25_000},
		Retention:     retention.Settings{Bytes: 24 * time.Hour, Sweep: time.Hour},
		Snapshots:     Snapshots{Every: 500},
		Audit:         Audit{KeyFile: "watchtower-data/audit.key", Seals: notary.Settings{Every: 10 * time.Second, Events: 5000}},
		Archive:       Archive{After: 720 * time.Hour, Segment: 1_000_000, Partition: 20_000_000},
		Cancel:        Cancel{GroupIDSignatures: true},
		Log:           Log{Level: slog.LevelInfo, Format: JSON},
		Tracing:       Tracing{Percent: 100},
		ShutdownGrace: 20 * time.Second,
	}
	got, settings, err := Resolve(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, s := range settings {
		if s.Origin != "default" {
			t.Errorf("%s comes from %s", s.Name, s.Origin)
		}
	}
	if err := got.CheckServe(); err == nil || !strings.Contains(err.Error(), "WATCHTOWER_CHAINS") {
		t.Errorf("serving without a chain: %v", err)
	}
}

func TestPrecedence(t *testing.T) {
	in := input{file: "listen: 127.0.0.1:1\n", env: []string{"WATCHTOWER_LISTEN=127.0.0.1:2"}, flags: []string{"--listen=127.0.0.1:3"}}
	want := []Setting{
		{"listen", "127.0.0.1:3", "flag --listen"},
		{"listen", "127.0.0.1:2", "env WATCHTOWER_LISTEN"},
		{"listen", "127.0.0.1:1", "w.yaml:1"},
		{"listen", "127.0.0.1:8420", "default"},
	}
	for i, want := range want {
		switch i {
		case 1:
			in.flags = nil
		case 2:
			in.env = nil
		case 3:
			in.file = "# nothing\n"
		}
		c, settings := in.mustResolve(t)
		if diff := cmp.Diff(want, settings["listen"]); diff != "" {
			t.Error(diff)
		}
		if c.Listen != want.Value {
			t.Errorf("Listen is %s, not %s", c.Listen, want.Value)
		}
	}
}

// Of a duplicate variable the first value counts, as with os.Getenv.
func TestFirstVariableWins(t *testing.T) {
	c, _ := input{env: []string{"WATCHTOWER_LISTEN=127.0.0.1:1", "WATCHTOWER_LISTEN=127.0.0.1:2"}}.mustResolve(t)
	if c.Listen != "127.0.0.1:1" {
		t.Error(c.Listen)
	}
}

// Each setting can be set by file, environment and flag.
func TestEverySettingEveryWay(t *testing.T) {
	other := map[string]string{
		"listen": "127.0.0.1:1", "metrics-listen": "localhost:2", "store": "embedded:x", "database": "embedded:y",
		"deployment": "payroll-eu", "archive": "file:/var/archive", "cancel.group-id-signatures": "false",
		"redis": "redis://127.0.0.1:6379", "vault-key-file": "/k", "audit.key-file": "/a", "chains": "7=http://a", "confirmations": "42=3", "grouping": "all",
		"watcher.use-websocket": "false", "log.level": "debug", "log.format": "text", "log.facts": "true", "open-access": "true", "profiling": "true", "console": "false",
		"trusted-proxies": "10.0.0.0/8,192.168.1.7/32", "api.rpc": "false", "api.origins": "https://app.example,http://localhost:3000", "api.hosts": "watchtower,api.example.com",
		"tracing.endpoint": "http://127.0.0.1:4318",
	}
	chains := "WATCHTOWER_CHAINS=42=http://n" // for confirmations
	for _, s := range new(draft).table() {
		value := other[s.path]
		switch s.kind {
		case duration:
			value = "2500ms"
			switch s.path {
			case "retention.sweep":
				value = "5m"
			case "endpoints.head-timeout":
				value = "3s"
			}
		case number:
			value = "2048"
			if s.path == "broadcaster.fanout" || s.path == "endpoints.agree" || s.path == "scheduler.window" || s.path == "tracing.percent" {
				value = "3"
			}
		}
		section, name, nested := strings.Cut(s.path, ".")
		file := section + ": " + value + "\n"
		if nested {
			file = section + ":\n  " + name + ": " + value + "\n"
		}
		// Set further values that must agree with the changed value.
		var env []string
		switch s.path {
		case "confirmations":
			env = []string{chains}
		case "scheduler.retry-min", "owner.lease-renew":
			env = []string{"WATCHTOWER_OWNER_LEASE_TTL=9s"}
		case "owner.lease-ttl":
			env = []string{"WATCHTOWER_OWNER_LEASE_RENEW=500ms"}
		case "scheduler.lease-ttl":
			env = []string{"WATCHTOWER_BROADCASTER_TIMEOUT=1s"}
		case "scheduler.rebroadcast-max":
			env = []string{"WATCHTOWER_SCHEDULER_REBROADCAST_MIN=1s"}
		case "api.write-timeout":
			env = []string{"WATCHTOWER_API_READ_TIMEOUT=1s"}
		case "shutdown-grace":
			env = []string{"WATCHTOWER_SCHEDULER_LEASE_TTL=2s", "WATCHTOWER_BROADCASTER_TIMEOUT=1s"}
		}
		shown := map[string]string{"2500ms": "2.5s"}[value]
		if shown == "" {
			shown = value
		}
		_, before := input{env: env}.mustResolve(t)
		for _, in := range []input{
			{file: file, env: env},
			{env: append([]string{s.env() + "=" + value}, env...)},
			{flags: []string{"--" + s.flag() + "=" + value}, env: env},
		} {
			_, settings, err := in.resolve(t)
			if err != nil {
				t.Errorf("%s: %v", s.path, err)
				continue
			}
			for _, got := range settings {
				if got.Name == s.path && (got.Value != shown || got.Value == before[s.path].Value || got.Origin == "default") {
					t.Errorf("%s given as %+v is %s from %s", s.path, in, got.Value, got.Origin)
				}
			}
		}
	}
}

func TestBounds(t *testing.T) {
	beyond := func(k kind, text string, by int) string {
		if k == number {
			n, err := parseWhole(text)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(n + int64(by))
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return (d + time.Duration(by)).String()
	}
	for _, s := range new(draft).table() {
		if s.kind != number && s.kind != duration {
			continue
		}
		low, high, ok := strings.Cut(s.allowed, " to ")
		if !ok {
			t.Fatalf("%s has no bounds", s.path)
		}
		good := []string{low, high}
		if s.standard != "" {
			good = append(good, s.standard)
		}
		for _, good := range good {
			if err := s.read(good); err != nil {
				t.Errorf("%s refuses %s: %v", s.path, good, err)
			}
		}
		for _, bad := range []string{beyond(s.kind, low, -1), beyond(s.kind, high, 1), "1e3", "99999999999999999999h", "99999999999999999999", "", "x", " 1s"} {
			if err := s.read(bad); err == nil {
				t.Errorf("%s takes %q", s.path, bad)
			}
		}
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]string{configFlag: "--config", configEnv: "--config"}
	for _, s := range new(draft).table() {
		for _, name := range []string{s.path, s.env(), "--" + s.flag()} {
			if other := seen[name]; other != "" {
				t.Errorf("%s is a name of %s and of %s", name, s.path, other)
			}
			seen[name] = s.path
		}
		if !strings.HasSuffix(s.doc, ".") || s.standard == "" && s.absent == "" || s.allowed == "" {
			t.Errorf("%s is not documented", s.path)
		}
	}
}

func TestDerivedPlaces(t *testing.T) {
	pg := Store{Engine: Postgres, URL: NewSecret("postgres://u:p@h/db")}
	for _, test := range []struct {
		env             []string
		store, database Store
		key, origin     string
	}{
		{[]string{"WATCHTOWER_STORE=embedded:/d/"}, Store{Engine: Embedded, Dir: "/d"}, Store{Engine: Embedded, Dir: "/d"}, "/d/vault.key", "default"},
		{[]string{"WATCHTOWER_STORE=embedded::memory:"}, Store{Engine: Memory}, Store{Engine: Memory}, "", "default"},
		{[]string{"WATCHTOWER_STORE=postgres://u:p@h/db"}, pg, pg, "watchtower-data/vault.key", "default"},
		{[]string{"WATCHTOWER_STORE=embedded:d", "WATCHTOWER_DATABASE=postgres://u:p@h/db"}, Store{Engine: Embedded, Dir: "d"}, pg, "d/vault.key", "env WATCHTOWER_DATABASE"},
		{
			[]string{"WATCHTOWER_STORE=esdb+discover://u:p@h,i:2113?tls=true", "WATCHTOWER_DATABASE=postgres://u:p@h/db"},
			Store{Engine: EventStoreDB, URL: NewSecret("esdb+discover://u:p@h,i:2113?tls=true")}, pg, "watchtower-data/vault.key", "env WATCHTOWER_DATABASE",
		},
		{[]string{"WATCHTOWER_STORE=embedded:d", "WATCHTOWER_DATABASE=embedded::memory:", "WATCHTOWER_VAULT_KEY_FILE=/k"}, Store{Engine: Embedded, Dir: "d"}, Store{Engine: Memory}, "/k", "env WATCHTOWER_DATABASE"},
	} {
		c, settings := input{env: test.env}.mustResolve(t)
		got := []any{c.Store, c.Database, c.VaultKeyFile, settings["database"].Origin}
		if diff := cmp.Diff([]any{test.store, test.database, test.key, test.origin}, got); diff != "" {
			t.Errorf("%v: %s", test.env, diff)
		}
	}
}

func TestFlagsShowDefaults(t *testing.T) {
	flags := pflag.NewFlagSet("watchtower", pflag.ContinueOnError)
	Flags(flags)
	usage := flags.FlagUsages()
	for _, want := range []string{"--config file", "--listen text", "(default 127.0.0.1:8420)", "--scheduler-retry-min duration", "(default 250ms)"} {
		if !strings.Contains(usage, want) {
			t.Errorf("the usage lacks %q:\n%s", want, usage)
		}
	}
	if err := flags.Parse([]string{"--watcher-use-websocket"}); err != nil {
		t.Fatal(err)
	}
	if _, settings, err := Resolve(flags, []string{"WATCHTOWER_WATCHER_USE_WEBSOCKET=false"}, nil); err != nil {
		t.Error(err)
	} else if !strings.Contains(fmt.Sprint(settings), "{watcher.use-websocket true flag --watcher-use-websocket}") {
		t.Errorf("a toggle without a value is not true: %v", settings)
	}
}

func TestProblemsIsTheError(t *testing.T) {
	_, _, err := input{env: []string{"WATCHTOWER_LISTEN=x"}}.resolve(t)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Fatalf("%T is not one problem", err)
	}
	want := Problem{"env WATCHTOWER_LISTEN", "listen", `"x" is not host:port with a port from 0 to 65535`}
	if diff := cmp.Diff(want, problems[0]); diff != "" {
		t.Error(diff)
	}
}
