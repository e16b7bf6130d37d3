package simulation

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// sealEvents is the maximum number of events per seal: low enough that some seals reach it.
const sealEvents = 100

// signerOf is the key with which a world's replicas seal.
func signerOf(seed uint64) (audit.Signer, error) {
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[:], seed)
	return audit.NewSigner(secret[:])
}

// seals checks the log against its links and its seals: the events of a seal when the seal is
// appended, the rest at the end.
type seals struct {
	judge *judge
	codec eventlog.Codec[audit.Event]
	last  audit.Sealed
	check *audit.Check
	next  []audit.Sealed    // not yet requested by the check
	read  eventlog.Position // position up to which the check has read
	owed  eventlog.Position // position of the last event that must be sealed

	orphan *replica // the notary's last holder, if it was killed with the lease
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

// see judges an appended event.
func (s *seals) see(r eventlog.Recorded) {
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

// wrong describes the fault of a seal at a position; empty: none. It uses none of the service's
// own checks before an append.
func (s *seals) wrong(seal audit.Sealed, at eventlog.Position) string {
	switch {
	case seal.Key != s.judge.world.signer.Key():
		return "the seal is signed by another key"
	case !seal.Genuine():
		return "the seal's signature does not fit"
	case seal.Since != s.last.Through:
		return fmt.Sprintf("the seal begins after position %d, and the one before has ended at %d", seal.Since, s.last.Through)
	case seal.Through <= seal.Since || seal.Through >= at:
		return fmt.Sprintf("the seal covers the events after position %d up to %d", seal.Since, seal.Through)
	case len(seal.Marks) > sealEvents*audit.MarkBytes || uint64(len(seal.Marks)) != audit.MarkBytes*(seal.Count-s.last.Count):
		return fmt.Sprintf("the seal has %d bytes of marks, and counts %d events after %d", len(seal.Marks), seal.Count, s.last.Count)
	}
	return ""
}

// readTo makes the check read the log up to a position.
func (s *seals) readTo(end eventlog.Position) {
	for s.read < end {
		b, _, err := s.judge.world.store.Page(context.Background(), s.read, eventlog.Filter{}, int(end-s.read)) //nolint:gosec // small
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

// finish judges the complete log.
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

// late reports whether an appended event is not sealed yet.
func (s *seals) late() bool { return s.last.Through < s.owed }

// killed records that a replica was killed.
func (s *seals) killed(r *replica) {
	if s.judge.world.owners[notary.Name] == r {
		s.orphan = r
	}
}

// by records which replica has sealed the log.
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
