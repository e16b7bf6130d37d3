package simulation

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// scribe is the only writer to the log of a world, and seals it.
type scribe struct {
	t     *testing.T
	w     *world
	last  map[eventlog.Stream]eventlog.Recorded
	seals audit.State
}

// record appends an event with its link to a stream, after harm has changed it.
func (s *scribe) record(stream eventlog.Stream, name string, data []byte, harm func(*eventlog.Event)) {
	last := s.last[stream]
	e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{15: 1}, int(last.Version)), Name: name, Data: data} //nolint:gosec // small
	link := eventlog.Link{}
	if last.Version > 0 {
		link = last.Linked()
	}
	e.Meta.Link = link.Next(stream, last.Version+1, e)
	if harm != nil {
		harm(&e)
	}
	a, err := s.w.store.Append(context.Background(), stream, last.Version, e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.last[stream] = eventlog.Recorded{Event: e, Stream: stream, Version: a.Version, Position: a.Position}
	s.w.appended(a, 1)
}

// seal seals the events since the last seal. before changes the seal before it is signed, after
// afterwards.
func (s *scribe) seal(before, after func(*audit.Sealed)) {
	draft := s.seals.After()
	for b, err := range s.w.store.ReadAll(context.Background(), draft.Through(), eventlog.Filter{}, sealEvents) {
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range b.Events {
			draft.Add(r)
		}
	}
	seal := draft.Sealed(s.w.signer, time.Now())
	if before != nil {
		before(&seal)
		seal = s.w.signer.Sign(seal)
	}
	if after != nil {
		after(&seal)
	}
	name, data, err := audit.Codec().Encode(seal)
	if err != nil {
		s.t.Fatal(err)
	}
	s.seals = s.seals.Evolve(seal)
	s.record(audit.Stream, name, data, nil)
}

// A seal that does not fit the log is reported when it is appended, and so is an event that does
// not fit its predecessor.
func TestSealsAreJudged(t *testing.T) {
	type harm struct {
		event         func(*eventlog.Event)
		before, after func(*audit.Sealed)
		want          string // prefix of the violation; empty: none
		says          string
	}
	for name, h := range map[string]harm{
		"nothing":             {},
		"an event's link":     {event: func(e *eventlog.Event) { e.Meta.Link[0]++ }, want: "P31: ", says: "does not match it"},
		"no link":             {event: func(e *eventlog.Event) { e.Meta.Link = eventlog.Link{} }, want: "P31: ", says: "no link"},
		"the hash":            {before: func(s *audit.Sealed) { s.Hash[0]++ }, want: "seals: ", says: "differ from the seal"},
		"the count":           {before: func(s *audit.Sealed) { s.Count++ }, want: "seals: ", says: "counts 4 events after 1"},
		"too late a begin":    {before: func(s *audit.Sealed) { s.Since++ }, want: "seals: ", says: "begins after position 2"},
		"too early an end":    {before: func(s *audit.Sealed) { s.Through = s.Since }, want: "seals: ", says: "up to 1"},
		"itself":              {before: func(s *audit.Sealed) { s.Through++ }, want: "seals: ", says: "up to 4"},
		"an earlier position": {before: func(s *audit.Sealed) { s.Through-- }, want: "seals: ", says: "events are missing"},
		"the signature":       {after: func(s *audit.Sealed) { s.Signature[0]++ }, want: "seals: ", says: "signature"},
		"who has signed": {after: func(s *audit.Sealed) {
			other, err := signerOf(s.Count)
			if err != nil {
				t.Fatal(err)
			}
			*s = other.Sign(*s)
		}, want: "seals: ", says: "another key"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := newWorld(Expand(1, short), slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				s := &scribe{t: t, w: w, last: map[eventlog.Stream]eventlog.Recorded{}}
				s.record("key-1", "key.created.v1", []byte("{}"), nil)
				s.seal(nil, nil)
				s.record("key-1", "key.revoked.v1", []byte("{}"), h.event)
				if !w.judge.seals.late() {
					t.Error("an event is left that no seal covers, and the world is at rest")
				}
				s.seal(h.before, h.after)
				found := strings.Join(w.judge.violations, "\n")
				if !strings.HasPrefix(found, h.want) || !strings.Contains(found, h.says) || (h.want == "") != (found == "") {
					t.Errorf("want %q with %q, got %q", h.want, h.says, found)
				}
				if w.judge.seals.finish(); h.want == "" && (len(w.judge.violations) > 0 || w.judge.seals.late()) {
					t.Errorf("in the end: %q", w.judge.violations)
				}
				if err := w.close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
