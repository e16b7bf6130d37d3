// Package optional skips tests whose environment this project cannot start. Separate modules
// use it, because it needs no other package of the project; package testenv does.
package optional

import (
	"os"
	"testing"
)

// Prefix begins the message of a test skipped by [Offered].
const Prefix = "OPTIONAL:"

// Offered returns a variable's value. Without it the test is skipped, even if
// WATCHTOWER_TEST_REQUIRE is set.
func Offered(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Skipf("%s %s is not set; nothing here can bring one up: set it where there is one", Prefix, name)
	}
	return value
}
