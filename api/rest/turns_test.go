package rest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
)

// One client's lists have half of the places at most. Of the waiting lists, the next is one of
// the client with the fewest places.
func TestListsTakeTurns(t *testing.T) {
	resttest.TakeTurns(t, NewLists, HolderOf, listPlaces, listShare, listQueue)
}
