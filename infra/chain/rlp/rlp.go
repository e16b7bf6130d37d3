// Package rlp reads Ethereum's Recursive Length Prefix encoding (Yellow Paper, appendix B) as
// strictly as a node does: every length and every integer in its shortest form, without missing
// or extra bytes. So bytes read without a fault are the only encoding of their content, and
// decoders may hash pieces of the received bytes instead of encoding again.
//
// It is the one package that the decoders of infra/chain share.
package rlp

import (
	"encoding/binary"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// List reads the items of one list in order. The first fault in a list, or in any list nested
// in it, is kept: from then on every read gives a zero value, More is false, and Err returns
// the fault. So a decoder reads all its fields and checks once.
//
// Slices returned by a List point into the bytes it was made from.
type List struct {
	payload []byte
	at      int               // start of the next item
	fault   **chain.Malformed // shared by the whole tree of lists
}

// Read opens b, which must hold exactly one list.
func Read(b []byte) List {
	whole := List{payload: b, fault: new(*chain.Malformed)}
	list := whole.List("transaction")
	if n := len(b) - whole.at; n > 0 {
		whole.Fail(chain.FaultTrailing, "transaction", fmt.Sprintf("%d bytes after its end", n))
	}
	return list
}

// Fail records a fault, unless there is one already.
func (l *List) Fail(fault chain.Fault, field, detail string) {
	if *l.fault == nil {
		*l.fault = &chain.Malformed{Fault: fault, Detail: field + ": " + detail}
	}
}

// Err is the first fault, a *chain.Malformed, or nil.
func (l *List) Err() error {
	if *l.fault == nil {
		return nil
	}
	return *l.fault
}

// More reports whether there is another item to read.
func (l *List) More() bool { return *l.fault == nil && l.at < len(l.payload) }

// End records a fault if an item follows.
func (l *List) End(field string) {
	if l.More() {
		l.Fail(chain.FaultRLP, field, "has more items than it should")
	}
}

// Taken is the encoding of all items read so far.
func (l *List) Taken() []byte { return l.payload[:l.at] }

// Rest is the encoding of all items still to be read.
func (l *List) Rest() []byte { return l.payload[l.at:] }

// NextIsList reports whether the next item exists and is a list.
func (l *List) NextIsList() bool { return l.More() && l.payload[l.at] >= listShort }

// List reads an item that is a list.
func (l *List) List(field string) List {
	payload, isList := l.item(field)
	if !isList {
		l.Fail(chain.FaultRLP, field, "is not a list")
	}
	return List{payload: payload, fault: l.fault}
}

// Bytes reads an item that is a string.
func (l *List) Bytes(field string) []byte {
	content, isList := l.item(field)
	if isList {
		l.Fail(chain.FaultRLP, field, "is a list, not a string")
	}
	if *l.fault != nil {
		return nil
	}
	return content
}

// Skip reads an item of any shape, with lists nested at most depth deep.
func (l *List) Skip(field string, depth int) {
	if !l.NextIsList() {
		l.Bytes(field)
		return
	}
	inner := l.List(field)
	if depth == 0 {
		l.Fail(chain.FaultRLP, field, "lists are nested too deep")
	}
	for inner.More() {
		inner.Skip(field, depth-1)
	}
}

// The first prefix byte of each kind of item.
const (
	stringShort = 0x80 // a string of 0 to 55 bytes
	stringLong  = 0xb8 // a string whose length takes 1 to 8 separate bytes
	listShort   = 0xc0
	listLong    = 0xf8
	longest     = 55 // the longest content of a short form
)

// item takes the next item and returns its content.
func (l *List) item(field string) (content []byte, isList bool) {
	if *l.fault != nil {
		return nil, false
	}
	rest := l.payload[l.at:]
	if len(rest) == 0 {
		l.Fail(chain.FaultRLP, field, "is missing")
		return nil, false
	}
	prefix := rest[0]
	head, size, shortest := measure(rest)
	switch {
	case !shortest:
		l.Fail(chain.FaultNonCanonical, field, "its length is not in the shortest form")
		return nil, false
	case size > uint64(len(rest)-head):
		l.Fail(chain.FaultRLP, field, "runs past the end")
		return nil, false
	}
	content = rest[head : head+int(size)]
	if head == 1 && prefix == stringShort+1 && content[0] < stringShort {
		l.Fail(chain.FaultNonCanonical, field, "a byte below 0x80 must stand for itself")
		return nil, false
	}
	l.at += head + int(size)
	return content, prefix >= listShort
}

// measure reads the length of the item at the start of b: head bytes of prefix, then size bytes
// of content, which may extend past the end of b.
func measure(b []byte) (head int, size uint64, shortest bool) {
	prefix := b[0]
	switch {
	case prefix < stringShort:
		return 0, 1, true
	case prefix < stringLong:
		return 1, uint64(prefix - stringShort), true
	case prefix < listShort:
		head = 2 + int(prefix-stringLong)
	case prefix < listLong:
		return 1, uint64(prefix - listShort), true
	default:
		head = 2 + int(prefix-listLong)
	}
	if len(b) < head {
		return len(b), 1, true // the length itself is incomplete: past the end in any case
	}
	var length [8]byte
	copy(length[8-(head-1):], b[1:head])
	size = binary.BigEndian.Uint64(length[:])
	return head, size, b[1] != 0 && size > longest
}

// ListHeader is the prefix of a list whose items take size bytes.
func ListHeader(size int) []byte {
	if size <= longest {
		return []byte{listShort + byte(size)}
	}
	digits := minimal(uint64(size))
	return append([]byte{listLong + byte(len(digits)) - 1}, digits...)
}

// Uint64 is the encoding of an integer.
func Uint64(n uint64) []byte {
	digits := minimal(n)
	if len(digits) == 1 && digits[0] < stringShort {
		return digits
	}
	return append([]byte{stringShort + byte(len(digits))}, digits...)
}

// minimal is n in big-endian bytes, without leading zeros.
func minimal(n uint64) []byte {
	digits := binary.BigEndian.AppendUint64(nil, n)
	for len(digits) > 0 && digits[0] == 0 {
		digits = digits[1:]
	}
	return digits
}
