// Package optional skips tests of what nothing here can bring up. It is a leaf: modules
// of their own use it without what package testenv needs.
package optional

import (
	"os"
	"testing"
)

// Prefix begins what a test says that [Offered] skips.
const Prefix = "OPTIONAL:"

// Offered is a variable's value. Without it the test is skipped, also when
// WATCHTOWER_TEST_REQUIRE is set.
func Offered(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Skipf("%s %s is not set; nothing here can bring one up: set it where there is one", Prefix, name)
	}
	return value
}
