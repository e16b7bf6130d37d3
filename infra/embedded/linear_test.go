package embedded_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// The store that is removed by Close also passes the contract's histories.
func TestLinearInMemory(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("streams", func(t *testing.T) { storetest.LinearStreams(t, db.Log(), storetest.SmallCrowd(2)) })
	t.Run("leases", func(t *testing.T) {
		storetest.LinearLeases(t, db.Work(), storetest.Clock{}, storetest.SmallCrowd(2))
	})
	t.Run("requests", func(t *testing.T) { storetest.LinearRequests(t, db.Requests(), storetest.SmallCrowd(2)) })
}
