package lane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SnapshotSchema is the version of the format that [State.Snapshot] writes. A change to the
// format, or to the effect of an event in [State.Evolve], needs the next number: snapshots of
// other versions are rebuilt from the events.
const SnapshotSchema = 1

// Sizes of counted parts of a snapshot, in bytes. All numbers are big-endian uint64; lists and
// texts follow their count. The layout is: token, cursor, known flag, holder, jumped-over spans,
// open nonces. A nonce: its number, Since, intent, filled flag, landed flag (then hash, block and
// status), attempts.
const (
	snapshotSpan    = 2 * 8
	snapshotSlot    = 8 + 8 + 16 + 1 + 1 + 8
	snapshotAttempt = 16 + 32 + 32 + 32 + 8
)

// Snapshot encodes a state. The same state gives the same bytes.
func (s State) Snapshot() []byte {
	w := &writer{}
	w.number(uint64(s.Token)).number(s.Next).flag(s.Known)
	w.number(uint64(len(s.Holder))).bytes([]byte(s.Holder))
	w.number(uint64(len(s.skipped)))
	for _, span := range s.skipped {
		w.number(span.First).number(span.End)
	}
	w.number(uint64(len(s.open)))
	for _, slot := range s.open {
		w.slot(*slot)
	}
	return w.out
}

type writer struct{ out []byte }

func (w *writer) bytes(b []byte) *writer { w.out = append(w.out, b...); return w }

func (w *writer) number(n uint64) *writer {
	w.out = binary.BigEndian.AppendUint64(w.out, n)
	return w
}

func (w *writer) flag(yes bool) {
	if yes {
		w.bytes([]byte{1})
	} else {
		w.bytes([]byte{0})
	}
}

func (w *writer) slot(s Slot) {
	w.number(s.Nonce).number(uint64(s.Since.UnixMilli())).bytes(s.Intent[:]).flag(s.Filled)
	w.flag(s.Landed != nil)
	if l := s.Landed; l != nil {
		w.bytes(l.Hash[:]).number(l.Block.Number).bytes(l.Block.Hash[:]).bytes(l.Block.Parent[:]).number(l.Block.Time).number(l.Status)
	}
	w.number(uint64(len(s.Attempts)))
	for _, m := range s.Attempts {
		fee, tip := m.Fee.MaxFee.Int().Bytes32(), m.Fee.MaxPriorityFee.Int().Bytes32()
		w.bytes(m.Intent[:]).bytes(m.Hash[:]).bytes(fee[:]).bytes(tip[:]).number(uint64(m.At.UnixMilli()))
	}
}

// Restore decodes the bytes of [State.Snapshot] under [SnapshotSchema].
func Restore(data []byte) (State, error) {
	r := &reader{left: data}
	s := State{Token: Token(r.number()), Next: r.number(), Known: r.flag()}
	s.Holder = string(r.take(r.count(1)))
	for range r.count(snapshotSpan) {
		span := Span{r.number(), r.number()}
		if n := len(s.skipped); span.First >= span.End || n > 0 && span.First <= s.skipped[n-1].End {
			return State{}, fmt.Errorf("lane snapshot jumps over %d to %d", span.First, span.End)
		}
		s.skipped = append(s.skipped, span)
	}
	for range r.count(snapshotSlot) {
		slot := r.slot()
		if n := len(s.open); n > 0 && slot.Nonce <= s.open[n-1].Nonce {
			return State{}, fmt.Errorf("lane snapshot has nonce %d after %d", slot.Nonce, s.open[n-1].Nonce)
		}
		s.open = append(s.open, &slot)
	}
	if r.bad || len(r.left) > 0 {
		return State{}, errors.New("lane snapshot is truncated or invalid")
	}
	return s, nil
}

// reader consumes bytes from the front. Reading past the end gives zeros and sets bad.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.left) {
		r.bad, r.left = true, nil
		return make([]byte, n)
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *reader) number() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *reader) time() time.Time { return time.UnixMilli(int64(r.number())).UTC() }

func (r *reader) flag() bool {
	b := r.take(1)[0]
	r.bad = r.bad || b > 1
	return b == 1
}

// count reads the number of following items of at least size bytes each.
func (r *reader) count(size int) int {
	n := r.number()
	if n > uint64(len(r.left)/size) {
		r.bad, r.left = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) slot() Slot {
	s := Slot{Nonce: r.number(), Since: r.time(), Intent: chain.IntentID(r.take(16)), Filled: r.flag()}
	if r.flag() {
		s.Landed = &Landing{Nonce: s.Nonce, Hash: r.hash()}
		s.Landed.Block = chain.Block{Number: r.number(), Hash: r.hash(), Parent: r.hash(), Time: r.number()}
		s.Landed.Status = r.number()
	}
	for range r.count(snapshotAttempt) {
		s.Attempts = append(s.Attempts, Made{
			Intent: chain.IntentID(r.take(16)), Hash: r.hash(),
			Fee: chain.Fee{MaxFee: r.price(), MaxPriorityFee: r.price()}, At: r.time(),
		})
	}
	return s
}

func (r *reader) hash() chain.Hash { return chain.Hash(r.take(32)) }

func (r *reader) price() chain.Price { return chain.Price(*new(uint256.Int).SetBytes32(r.take(32))) }
