package eventstoredb_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// A subscription that a node has forgotten, on a connection that is well, goes on all the
// same.
func TestSubscriptionFallsSilent(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	l.LookEvery(20 * time.Millisecond)
	stands(t, l, "s", 0, 1)
	version := event.Version(0)
	for b, err := range l.Subscribe(soon(t), 0, event.Filter{}, 10) {
		must(t, err)
		for _, e := range b.Events {
			if version++; e.Version != version {
				t.Fatalf("version %d comes where %d has to", e.Version, version)
			}
		}
		if version == 4 {
			break
		}
		if b.Live { // the server's subscription may have begun, or be about to
			server.Mute()
			stands(t, l, "s", version, 1)
		}
	}
}
