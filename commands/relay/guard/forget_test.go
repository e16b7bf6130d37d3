package guard

import (
	"strconv"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// A client that invents subjects loses its own entries in the end, and no others: other
// clients' requests stay counted, and so does the client's own rate.
func TestInventedSubjectsAreTheirClients(t *testing.T) {
	slow := safeguard.Rate{PerSecond: 1, Burst: 3600}
	now := time.Unix(1_800_000_000, 0)
	var r rates
	take := func(client, subject string, by safeguard.Rate) bool {
		t.Helper()
		limits := []limited{{who{safeguard.OfClient, client, ""}, safeguard.Rate{PerSecond: 1000, Burst: 1_000_000}}, {who{safeguard.EachSubject, client, subject}, by}}
		return r.take(now, limits) == nil
	}
	for _, client := range []string{"alice", "bob", "carol"} {
		for n := range 100 {
			take(client, strconv.Itoa(n), slow)
		}
		for range slow.Burst {
			take(client, "busy", slow)
		}
		if take(client, "busy", slow) {
			t.Fatalf("%s's rate is not used up", client)
		}
	}
	asked := 0
	for n := range 3 * ratesMax {
		if take("mallory", strconv.Itoa(n), slow) {
			asked++
		}
		if len(r.full) > ratesMax+1 {
			t.Fatalf("%d are remembered", len(r.full))
		}
	}
	for _, client := range []string{"alice", "bob", "carol"} {
		if take(client, "busy", slow) {
			t.Errorf("%s's rate was forgotten", client)
		}
	}
	if left := r.full[who{safeguard.OfClient, "mallory", ""}].Sub(now); left != time.Duration(asked)*time.Millisecond {
		t.Errorf("of %d requests %s are remembered", asked, left)
	}
	// Entries with a full allowance are dropped first.
	now = now.Add(time.Hour)
	for n := range ratesMax {
		take("mallory", strconv.Itoa(n), slow)
	}
	if len(r.full) > ratesMax+1 {
		t.Errorf("%d are remembered", len(r.full))
	}
}
