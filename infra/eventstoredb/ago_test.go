package eventstoredb_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// A position before the last events is one that can be read from, and they follow it, over
// more than one page as within one. Some are the server's own.
func TestAgo(t *testing.T) {
	server, err := esdbtest.New(esdbtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	log := open(t, server.URL(), eventstoredb.Options{}).log
	const all, foreign = 1200, 10
	for n := eventlog.Version(0); n < all; n += eventlog.MaxAppend {
		var some []eventlog.Event
		for i := range eventlog.MaxAppend {
			some = append(some, eventlog.Event{ID: eventlog.DeriveID("s", eventlog.ID{}, int(n)+i), Name: "a.v1", Data: []byte(`{}`)})
		}
		if _, err := log.Append(t.Context(), "s", n, some...); err != nil {
			t.Fatal(err)
		}
	}
	for _, last := range []int{0, 1, 499, 500, 1001, all, 5000} {
		at, err := log.Ago(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for batch, err := range log.ReadAll(t.Context(), at, eventlog.Filter{}, all) {
			if err != nil {
				t.Fatalf("the last %d: %v", last, err)
			}
			found += len(batch.Events)
		}
		if most := min(last, all); found > most || found < most-foreign {
			t.Errorf("%d events are after the last %d", found, last)
		}
	}
}
