package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SnapshotSchema is the version of the format that [State.Snapshot] writes. A change to the
// format, or to the effect of an event in [State.Evolve], needs the next number: snapshots of
// other versions are rebuilt from the events.
const SnapshotSchema = 2

// Sizes of the parts of a snapshot, in bytes. All numbers are big-endian uint64. The layout is:
// nonce key; counts of canceled members, authorities and members; authorities by digest, each its
// digest, expiry and number of members; members in the order of joining.
const (
	snapshotHead   = 32 + 3*8
	snapshotShown  = 32 + 2*8
	snapshotMember = 32 + 3*8
)

// Snapshot encodes a state. The same state gives the same bytes.
func (s State) Snapshot() []byte {
	out := make([]byte, 0, snapshotHead+len(s.Shown)*snapshotShown+s.Members*snapshotMember)
	out = append(out, s.NonceKey[:]...)
	for _, n := range []int{s.Canceled, len(s.Shown), s.Members} {
		out = binary.BigEndian.AppendUint64(out, uint64(n))
	}
	digests := slices.SortedFunc(maps.Keys(s.Shown), func(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) })
	for _, digest := range digests {
		shown := s.Shown[digest]
		out = binary.BigEndian.AppendUint64(append(out, digest[:]...), shown.Expires)
		out = binary.BigEndian.AppendUint64(out, uint64(shown.Members))
	}
	for _, m := range s.List() {
		out = append(out, m.Hash[:]...)
		for _, n := range []uint64{m.Nonce, m.EligibleAt, m.ExpiresAt} {
			out = binary.BigEndian.AppendUint64(out, n)
		}
	}
	return out
}

// Restore decodes the bytes of [State.Snapshot] under [SnapshotSchema].
func Restore(data []byte) (s State, err error) {
	r := reader{data}
	r.copy(s.NonceKey[:])
	canceled, shown, members := r.number(), r.number(), r.number()
	switch left := uint64(len(r.left)); {
	case len(data) < snapshotHead:
		return State{}, errors.New("group snapshot is cut short")
	case shown > authoritiesMax+1 || members > left/snapshotMember || shown*snapshotShown+members*snapshotMember != left || canceled > members:
		return State{}, fmt.Errorf("group snapshot of %d authorities and %d members, %d of them canceled, in %d bytes", shown, members, canceled, left)
	}
	s.Canceled, s.Members = int(canceled), int(members)
	if shown > 0 {
		s.Shown = map[chain.Hash]Shown{}
	}
	var before chain.Hash
	for i := range shown {
		var digest chain.Hash
		if r.copy(digest[:]); i > 0 && bytes.Compare(before[:], digest[:]) >= 0 {
			return State{}, errors.New("group snapshot has authorities out of order")
		}
		expires, found := r.number(), r.number()
		if found > canceled {
			return State{}, fmt.Errorf("group snapshot has an authority that found %d members, of %d canceled", found, canceled)
		}
		s.Shown[digest], before = Shown{Expires: expires, Members: int(found)}, digest
	}
	all := make([]Member, members)
	for i := range all {
		r.copy(all[i].Hash[:])
		all[i].Nonce, all[i].EligibleAt, all[i].ExpiresAt, all[i].Ordinal = r.number(), r.number(), r.number(), i
	}
	slices.SortFunc(all, byHash)
	for i := range all {
		if i > 0 && all[i].Hash == all[i-1].Hash {
			return State{}, fmt.Errorf("group snapshot has %s twice", all[i].Hash)
		}
	}
	if len(all) > 0 {
		s.roll = roll{all} // one run: sorted by hash
	}
	return s, nil
}

// reader consumes bytes from the front; past the end it reads zeros.
type reader struct{ left []byte }

func (r *reader) copy(into []byte) { r.left = r.left[copy(into, r.left):] }

func (r *reader) number() uint64 {
	var b [8]byte
	r.copy(b[:])
	return binary.BigEndian.Uint64(b[:])
}
