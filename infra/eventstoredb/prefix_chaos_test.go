//go:build chaos

package eventstoredb_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// TestStoreShared is the contract for a log that shares its server with others, as it
// does where the server is a real one.
func TestStoreShared(t *testing.T) {
	server := double(t, esdbtest.Options{})
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return open(t, prefixed(t, server.URL(), t.Name()), eventstoredb.Options{}).opened()
	})
}
