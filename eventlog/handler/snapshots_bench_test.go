package handler_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// BenchmarkLoadGroup loads a group of 10,000 members from its events, and from its
// snapshot, in one run.
func BenchmarkLoadGroup(b *testing.B) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the benchmark is over
	const members = 10_000
	plain := groupHandler(db.Log(), nil)
	var at handler.Result[group.State]
	for from := 0; from < members; from += group.JoinMax {
		var j group.Join
		for n := range group.JoinMax {
			j.Members = append(j.Members, member(from+n))
		}
		if at, err = plain.HandleFrom(b.Context(), "group-1", at, j, handler.Origin{ID: eventlog.ID{byte(from >> 8), byte(from)}}); err != nil {
			b.Fatal(err)
		}
	}
	load := func(h groups) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if r, err := h.Load(b.Context(), "group-1"); err != nil || r.State.Members != members {
					b.Fatalf("%d members, %v", r.State.Members, err)
				}
			}
		}
	}
	b.Run("events", load(plain))
	b.Run("snapshot", load(groupHandler(db.Log(), db.Snapshots())))
}
