// Package testenv gives tests the real servers they need. cmd/testrun starts the
// servers and says where they are; a test that cannot have one says so loudly,
// and fails instead of skipping when WATCHTOWER_TEST_REQUIRE is set.
package testenv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The variables that cmd/testrun sets.
const (
	PostgresVar    = "WATCHTOWER_TEST_POSTGRES"     // URL of a database whose user may create others
	PostgresBinVar = "WATCHTOWER_TEST_POSTGRES_BIN" // folder of initdb and postgres: for a server of one's own (testenv/server)
	RedisVar       = "WATCHTOWER_TEST_REDIS"        // URL
	RedisBinVar    = "WATCHTOWER_TEST_REDIS_BIN"    // path of redis-server
	AnvilVar       = "WATCHTOWER_TEST_ANVIL"        // path of the anvil binary
	ViemVar        = "WATCHTOWER_TEST_VIEM"         // folder whose node_modules holds viem
	TypeScriptVar  = "WATCHTOWER_TEST_TYPESCRIPT"   // folder whose node_modules holds the compiler
	RequireVar     = "WATCHTOWER_TEST_REQUIRE"      // set: a missing part is a failure
)

// Need returns a variable's value, or ends the test: skipped, or failed when
// [RequireVar] is set.
func Need(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	switch {
	case value != "":
	case os.Getenv(RequireVar) != "":
		t.Fatalf("MISSING: %s is not set and %s forbids skipping; run the tests by make test", name, RequireVar)
	default:
		t.Skipf("MISSING: %s is not set; run the tests by make test", name)
	}
	return value
}

// Islands ends the test, skipped or failed as by [Need], where network namespaces
// cannot be made: that takes root, and the programs ip and tc.
func Islands(t testing.TB) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program+" (iproute2)")
		}
	}
	switch {
	case len(missing) == 0:
	case os.Getenv(RequireVar) != "":
		t.Fatalf("MISSING: %s, for network namespaces, and %s forbids skipping", strings.Join(missing, ", "), RequireVar)
	default:
		t.Skipf("MISSING: %s, for network namespaces", strings.Join(missing, ", "))
	}
}

// Postgres makes an empty database that lives as long as the test and returns its URL.
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

// Random is n random bytes in hex: for names that must not meet.
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
