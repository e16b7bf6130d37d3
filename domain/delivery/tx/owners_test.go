package tx

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A transaction belongs to each client that submitted it. Each client is recorded once, until the
// stream is retired.
func TestOwners(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	s := State{}
	submit := func(client string, added int) {
		t.Helper()
		events, err := s.Decide(Accept{Accepted{Hash: chain.Hash{1}, Client: client, At: at}})
		if err != nil || len(events) != added {
			t.Fatalf("%q adds %d events, %v", client, len(events), err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
	}
	if s.OwnedBy("") {
		t.Error("a transaction that does not exist belongs to the anonymous client")
	}
	submit("shop", 1)
	submit("shop", 0)
	submit("bank", 1)
	before := s
	submit("", 1)
	submit("bank", 0)
	if diff := cmp.Diff([]string{"shop", "bank", ""}, s.Owners()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if before.OwnedBy("") || !s.OwnedBy("") || s.OwnedBy("other") || s.Status != StatusQueued {
		t.Errorf("%v, then %v, %s", before.Owners(), s.Owners(), s.Status)
	}
	for len(s.Resubmitters) < resubmittersMax {
		s.Resubmitters = append(s.Resubmitters, "another")
	}
	submit("one too many", 0)
	s = s.Evolve(Retired{At: at})
	s.Resubmitters = nil
	submit("late", 0)
}
