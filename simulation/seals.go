package simulation

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// sealEvents is how many events a seal covers at most: so few that it happens that one
// holds no more.
const sealEvents = 100

// signerOf is the key that a world's replicas seal with.
func signerOf(seed uint64) (audit.Signer, error) {
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[:], seed)
	return audit.NewSigner(secret[:])
}

// seals holds the log against its links and against its seals: what a seal covers is
// looked at when the seal is appended, the rest at the end.
type seals struct {
	judge *judge
	codec event.Codec[audit.Event]
	last  audit.Sealed
	check *audit.Check
	next  []audit.Sealed // the check has not asked for
	read  event.Position // up to here the check has looked
	owed  event.Position // of the last event that a seal has to cover

	orphan *replica // the notary's lease was its when it was killed
}

func newSeals(j *judge) *seals {
	s := &seals{judge: j, codec: audit.Codec()}
	s.check = audit.NewCheck(func() (audit.Sealed, bool) {
		if len(s.next) == 0 {
			return audit.Sealed{}, false
		}
		first := s.next[0]
		s.next = s.next[1:]
		return first, true
	})
	return s
}

// see judges an event that was appended.
func (s *seals) see(r event.Recorded) {
	if r.Stream != audit.Stream {
		s.owed = r.Position
		return
	}
	e, err := s.codec.Decode(r.Name, r.Data)
	if err != nil {
		s.fail(audit.Fault{Position: r.Position, Stream: r.Stream, Version: r.Version, What: err.Error()})
		return
	}
	seal := e.(audit.Sealed) //nolint:errcheck // there is no other
	if wrong := s.wrong(seal, r.Position); wrong != "" {
		s.fail(audit.Fault{Position: r.Position, Stream: r.Stream, Version: r.Version, What: wrong})
		return
	}
	s.last, s.next = seal, append(s.next, seal)
	s.readTo(seal.Through)
}

// wrong says what is the matter with a seal at a position, by itself; empty: nothing. It
// asks nobody whom the service asks before it appends one.
func (s *seals) wrong(seal audit.Sealed, at event.Position) string {
	switch {
	case seal.Key != s.judge.world.signer.Key():
		return "the seal is signed by another key"
	case !seal.Genuine():
		return "the seal's signature does not fit"
	case seal.Since != s.last.Through:
		return fmt.Sprintf("the seal begins after position %d, and the one before has ended at %d", seal.Since, s.last.Through)
	case seal.Through <= seal.Since || seal.Through >= at:
		return fmt.Sprintf("the seal is of what comes after position %d up to %d", seal.Since, seal.Through)
	case len(seal.Marks) > sealEvents*audit.MarkBytes || uint64(len(seal.Marks)) != audit.MarkBytes*(seal.Count-s.last.Count):
		return fmt.Sprintf("the seal has %d bytes of marks, and counts %d events after %d", len(seal.Marks), seal.Count, s.last.Count)
	}
	return ""
}

// readTo has the check look at the log up to a position.
func (s *seals) readTo(end event.Position) {
	for s.read < end {
		b, _, err := s.judge.world.store.Page(context.Background(), s.read, event.Filter{}, int(end-s.read)) //nolint:gosec // small
		if err != nil {
			panic(err) // it is memory
		}
		for _, r := range b.Events {
			if r.Position <= end {
				s.fail(s.check.Event(r)...)
			}
		}
		s.read = min(b.Next, end)
	}
}

// finish judges the whole log, when there is no more to come.
func (s *seals) finish() {
	s.readTo(s.judge.world.head())
	s.fail(s.check.End()...)
	if sealed := s.check.Sealed(); sealed != s.last.Through {
		s.judge.fail("seals", "they witness the log up to position %d, and the last one says up to %d", sealed, s.last.Through)
	}
}

func (s *seals) fail(found ...audit.Fault) {
	for _, f := range found {
		s.judge.fail("seals", "%s", f)
	}
}

// late reports whether something was appended that no seal covers yet.
func (s *seals) late() bool { return s.last.Through < s.owed }

// killed is told of a replica that was killed.
func (s *seals) killed(r *replica) {
	if s.judge.world.owners[notary.Name] == r {
		s.orphan = r
	}
}

// by is told who has sealed the log.
func (s *seals) by(r *replica) {
	some := s.judge.world.some
	some[sealed]++
	if s.orphan != nil && s.orphan != r {
		some[sealedAfterCrash]++
		s.orphan = nil
	}
	if len(s.last.Marks) == sealEvents*audit.MarkBytes {
		some[sealedFull]++
	}
}
