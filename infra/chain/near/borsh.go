package near

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/holiman/uint256"
)

// Borsh is NEAR's encoding: integers are little-endian, a u32 length precedes strings and lists, a u8 tag
// precedes the variant of an enum, an Option is 0 or 1, and nothing may follow the value
// (https://borsh.io, and borsh-rs 1.5.3 for the texts of errors).

// DecodeError says why bytes are no transaction. Its text is the one that a node answers with, which
// operators will have seen there.
type DecodeError struct{ Text string }

func (e *DecodeError) Error() string { return e.Text }

// reader reads borsh. After its first error every read returns zero, so a decoder looks at err where it
// must decide, and at its end.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, values ...any) {
	if r.err == nil {
		r.err = &DecodeError{Text: fmt.Sprintf(format, values...)}
	}
}

// take returns the next n bytes, which belong to the input; nil if there are fewer.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.rest) {
		r.fail("Unexpected length of input")
		return nil
	}
	bytes := r.rest[:n:n]
	r.rest = r.rest[n:]
	return bytes
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) u128() uint256.Int {
	lower, upper := r.u64(), r.u64()
	return uint256.Int{lower, upper}
}

func (r *reader) hash() (hash [32]byte) {
	copy(hash[:], r.take(len(hash)))
	return hash
}

// bytes reads a list of bytes. They belong to the input.
func (r *reader) bytes() []byte { return r.take(int(r.u32())) }

func (r *reader) text() string {
	bytes := r.bytes()
	if r.err != nil {
		return ""
	}
	if at, length, valid := invalidUTF8(bytes); !valid {
		if length == 0 {
			r.fail("incomplete utf-8 byte sequence from index %d", at)
		} else {
			r.fail("invalid utf-8 sequence of %d bytes from index %d", length, at)
		}
		return ""
	}
	return string(bytes)
}

// tag reads the tag of an enum with so many variants.
func (r *reader) tag(variants byte) byte {
	tag := r.u8()
	if r.err == nil && tag >= variants {
		r.fail("Unexpected variant tag: %d", tag)
	}
	return tag
}

// some reads the tag of an Option.
func (r *reader) some() bool {
	tag := r.u8()
	if r.err == nil && tag > 1 {
		r.fail("Invalid Option representation: %d. The first byte must be 0 or 1", tag)
	}
	return tag == 1
}

// list reads a list's elements by read. Memory grows with the elements that are there: the length that the
// bytes claim allocates nothing.
func list[E any](r *reader, read func(*reader) E) []E {
	var elements []E
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		element := read(r)
		if r.err == nil {
			elements = append(elements, element)
		}
	}
	return elements
}

// invalidUTF8 finds the first byte sequence that is no UTF-8: where it begins, and how long it is; 0 if the
// bytes end within a sequence that may be valid.
func invalidUTF8(bytes []byte) (at, length int, valid bool) {
	for at < len(bytes) {
		r, size := utf8.DecodeRune(bytes[at:])
		if r != utf8.RuneError || size > 1 {
			at += size
			continue
		}
		if !utf8.FullRune(bytes[at:]) {
			return at, 0, false
		}
		length = 1
		// A sequence is as long as its bytes could still begin a valid one.
		for length < 3 && at+length < len(bytes) && !utf8.FullRune(bytes[at:at+length+1]) {
			length++
		}
		return at, length, false
	}
	return 0, 0, true
}

// writer appends borsh.
type writer []byte

func (w *writer) u8(v byte)    { *w = append(*w, v) }
func (w *writer) u16(v uint16) { *w = binary.LittleEndian.AppendUint16(*w, v) }
func (w *writer) u32(v uint32) { *w = binary.LittleEndian.AppendUint32(*w, v) }
func (w *writer) u64(v uint64) { *w = binary.LittleEndian.AppendUint64(*w, v) }

// u128 appends the lower 128 bits.
func (w *writer) u128(v uint256.Int) { w.u64(v[0]); w.u64(v[1]) }
func (w *writer) raw(b []byte)       { *w = append(*w, b...) }
func (w *writer) bytes(b []byte)     { w.u32(uint32(len(b))); w.raw(b) }
func (w *writer) text(s string)      { w.u32(uint32(len(s))); *w = append(*w, s...) }

func writeList[E any](w *writer, elements []E, write func(*writer, E)) {
	w.u32(uint32(len(elements)))
	for _, element := range elements {
		write(w, element)
	}
}
