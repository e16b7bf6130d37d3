package promises_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// linked is a history of a transaction until after its end, and of a stream of another aggregate.
// harm alters the n-th event after it was linked.
func linked(n eventlog.Position, harm func(r *eventlog.Recorded)) func(s *script) {
	return func(s *script) {
		s.tie = func(r *eventlog.Recorded) {
			if r.Position == n {
				harm(r)
			}
		}
		executed(s, alpha)
		s.log(alpha, tx.PayloadErased{})
		s.record("key-1", "key.created.v1", []byte("{}"))
		s.record("key-1", "key.revoked.v1", []byte("{}"))
	}
}

func TestLinks(t *testing.T) {
	unlinked := func(r *eventlog.Recorded) { r.Meta.Link = eventlog.Link{} }
	run(t, promises.Settings{Linked: true}, []scenario{
		{"linked", 0, linked(0, nil)},
		{"the first without a link", promises.P31, linked(1, unlinked)},
		{"no links at all", promises.P31, func(s *script) { executed(s, alpha) }},
	})
	run(t, promises.Settings{}, []scenario{
		{"older than links", 0, func(s *script) { executed(s, alpha) }},
		{"links begin", 0, func(s *script) {
			s.record("key-1", "key.created.v1", []byte("{}"))
			first := eventlog.Recorded{Event: eventlog.Event{ID: eventlog.DeriveID("key-1", eventlog.ID{15: 1}, 0), Name: "key.created.v1", Data: []byte("{}")}, Stream: "key-1", Version: 1}
			s.links["key-1"] = first.Linked()
			s.tie = func(*eventlog.Recorded) {}
			s.record("key-1", "key.revoked.v1", []byte("{}"))
		}},
		{"one without a link", promises.P31, linked(2, unlinked)},
		{"the last without a link", promises.P31, linked(7, unlinked)},
		{"another actor", promises.P31, linked(1, func(r *eventlog.Recorded) { r.Meta.Actor = "x" })},
		{"another cause", promises.P31, linked(2, func(r *eventlog.Recorded) { r.Meta.Causation[0]++ })},
		{"another trace", promises.P31, linked(2, func(r *eventlog.Recorded) { r.Meta.Trace = "0" })},
		{"another link", promises.P31, linked(3, func(r *eventlog.Recorded) { r.Meta.Link[31] ^= 1 })},
		{"another name elsewhere", promises.P31, linked(6, func(r *eventlog.Recorded) { r.Name = "key.revoked.v1" })},
	})
}
