// Package testenv gives tests the real servers they need. cmd/testrun starts the servers and
// passes their addresses. A test without its server reports that visibly, and fails instead of
// skipping if WATCHTOWER_TEST_REQUIRE is set.
package testenv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/infra/testenv/optional"
)

// Variables set by cmd/testrun.
const (
	PostgresVar    = "WATCHTOWER_TEST_POSTGRES"     // URL of a database whose user may create databases
	PostgresBinVar = "WATCHTOWER_TEST_POSTGRES_BIN" // folder of initdb and postgres, for a separate server (testenv/server)
	// PostgresSettingsVar holds the settings of the server that cmd/testrun starts: name=value
	// each, separated by commas.
	PostgresSettingsVar = "WATCHTOWER_TEST_POSTGRES_SETTINGS"
	RedisVar            = "WATCHTOWER_TEST_REDIS"        // URL
	RedisBinVar         = "WATCHTOWER_TEST_REDIS_BIN"    // path of redis-server
	AnvilVar            = "WATCHTOWER_TEST_ANVIL"        // path of the anvil binary
	GethVar             = "WATCHTOWER_TEST_GETH"         // path of go-ethereum's node
	NATSVar             = "WATCHTOWER_TEST_NATS"         // path of nats-server
	ChromiumVar         = "WATCHTOWER_TEST_CHROMIUM"     // path of Chromium; default: found in PATH
	ViemVar             = "WATCHTOWER_TEST_VIEM"         // folder whose node_modules holds viem
	TypeScriptVar       = "WATCHTOWER_TEST_TYPESCRIPT"   // folder whose node_modules holds the compiler, and openapi-typescript
	EsbuildVar          = "WATCHTOWER_TEST_ESBUILD"      // path of esbuild
	WorkerdVar          = "WATCHTOWER_TEST_WORKERD"      // path of workerd, the runtime of Cloudflare Workers
	AxeVar              = "WATCHTOWER_TEST_AXE"          // folder whose node_modules holds axe-core
	NEARVar             = "WATCHTOWER_TEST_NEAR"         // folder whose node_modules holds near-api-js
	RedoclyVar          = "WATCHTOWER_TEST_REDOCLY"      // folder whose node_modules holds @redocly/cli
	WalletsVar          = "WATCHTOWER_TEST_WALLETS"      // folder whose node_modules holds ethers and web3
	CastVar             = "WATCHTOWER_TEST_CAST"         // path of Foundry's cast
	EventStoreVar       = "WATCHTOWER_TEST_ESDB"         // URL of a real EventStoreDB or KurrentDB; nothing here starts one
	ClusterVar          = "WATCHTOWER_TEST_ESDB_CLUSTER" // command that controls a cluster's nodes (docs/howto/eventstoredb.md)
	ProgramsVar         = "WATCHTOWER_TEST_PROGRAMS"     // folder of the programs that process tests start; default: build them
	RaceVar             = "WATCHTOWER_TEST_RACE"         // if set, all of these programs are built with the race detector
	RequireVar          = "WATCHTOWER_TEST_REQUIRE"      // if set, a missing part is a failure
)

// Need returns a variable's value, or ends the test: skipped, or failed if [RequireVar] is set.
func Need(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		missing(t, name+" is not set", "run the tests by make test")
	}
	return value
}

// Optional begins the message of a test skipped by [Offered].
const Optional = optional.Prefix

// Offered is Need for environments that this project cannot start: without the variable the
// test is skipped, even if [RequireVar] is set.
func Offered(t testing.TB, name string) string {
	t.Helper()
	return optional.Offered(t, name)
}

// Unsuited ends a test that the engine under test cannot support. The test is skipped with a
// reason, even if [RequireVar] is set.
func Unsuited(t testing.TB, why string) {
	t.Helper()
	t.Skipf("%s %s", Optional, why)
}

// Islands ends the test, skipped or failed as by [Need], if it cannot make network namespaces:
// that needs root, and the programs ip and tc (iproute2).
func Islands(t testing.TB) {
	t.Helper()
	Root(t)
	Programs(t, "ip", "tc")
}

// Root ends the test, as Need does, unless it runs as root: for example to mount file systems,
// or to trace another user's process.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "the test does not run as root", "run it as root")
	}
}

// Programs ends the test, as Need does, unless the system has these programs.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name+" is not in PATH", "install it")
		}
	}
}

// File returns the first path that matches a pattern, or ends the test, as Need does.
func File(t testing.TB, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		missing(t, "there is no "+pattern, "install it")
		return ""
	}
	return found[0]
}

func missing(t testing.TB, what, remedy string) {
	t.Helper()
	if os.Getenv(RequireVar) != "" {
		t.Fatalf("MISSING: %s and %s forbids skipping; %s", what, RequireVar, remedy)
	}
	t.Skipf("MISSING: %s; %s", what, remedy)
}

// Postgres makes an empty database for the duration of the test and returns its URL.
func Postgres(t testing.TB) string {
	t.Helper()
	admin, err := url.Parse(Need(t, PostgresVar))
	if err != nil {
		t.Fatalf("%s: %v", PostgresVar, err)
	}
	name := "test_" + Random(8)
	execute(t, admin.String(), "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin.String(), "DROP DATABASE "+name+" WITH (FORCE)") })
	own := *admin
	own.Path = "/" + name
	return own.String()
}

// Random returns n random bytes in hex, for unique names.
func Random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func execute(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // the test is over with it
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
