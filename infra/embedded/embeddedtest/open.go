// Package embeddedtest opens stores for tests.
package embeddedtest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// Open opens a store in memory, which the end of the test closes.
func Open(t *testing.T) *embedded.DB {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
