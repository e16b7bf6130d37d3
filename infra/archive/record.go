package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A record is one event: a length, then fields. A field is a tag, a length and bytes, or a tag
// and a number. Empty fields are left out. Lengths and numbers are varints.
const (
	tagStream = iota + 1
	tagVersion
	tagPosition
	tagAt // microseconds since 1970
	tagID
	tagName
	tagData
	tagCorrelation
	tagCausation
	tagActor
	tagTrace
	tagLink
)

func appendRecord(out []byte, r eventlog.Recorded) []byte {
	var b []byte
	number := func(tag byte, n uint64) { b = binary.AppendUvarint(append(b, tag), n) }
	bytes := func(tag byte, v []byte) {
		if len(v) > 0 {
			number(tag, uint64(len(v)))
			b = append(b, v...)
		}
	}
	id := func(tag byte, v eventlog.ID) {
		if !v.IsZero() {
			bytes(tag, v[:])
		}
	}
	b = make([]byte, 0, 256+len(r.Data))
	bytes(tagStream, []byte(r.Stream))
	number(tagVersion, uint64(r.Version))
	number(tagPosition, uint64(r.Position))
	number(tagAt, uint64(r.At.UnixMicro()))
	id(tagID, r.ID)
	bytes(tagName, []byte(r.Name))
	bytes(tagData, r.Data)
	id(tagCorrelation, r.Meta.Correlation)
	id(tagCausation, r.Meta.Causation)
	bytes(tagActor, []byte(r.Meta.Actor))
	bytes(tagTrace, []byte(r.Meta.Trace))
	if !r.Meta.Link.IsZero() {
		bytes(tagLink, r.Meta.Link[:])
	}
	out = binary.AppendUvarint(out, uint64(len(b)))
	return append(out, b...)
}

var errRecord = errors.New("a record that cannot be read")

// takeRecord reads the first record of a block and returns the rest of the block.
func takeRecord(block []byte) (r eventlog.Recorded, rest []byte, err error) {
	fields, rest, err := takeBytes(block)
	if err != nil {
		return r, nil, err
	}
	r.Data = []byte{}
	for len(fields) > 0 && err == nil {
		tag := fields[0]
		fields = fields[1:]
		switch tag {
		case tagVersion, tagPosition, tagAt:
			var n uint64
			if n, fields, err = takeNumber(fields); err != nil {
				break
			}
			switch tag {
			case tagVersion:
				r.Version = eventlog.Version(n)
			case tagPosition:
				r.Position = eventlog.Position(n)
			case tagAt:
				r.At = time.UnixMicro(int64(n)).UTC()
			}
		default:
			var v []byte
			if v, fields, err = takeBytes(fields); err == nil {
				err = setField(&r, tag, v)
			}
		}
	}
	return r, rest, err
}

func setField(r *eventlog.Recorded, tag byte, v []byte) error {
	id := func(into *eventlog.ID) error {
		if len(v) != len(into) {
			return errRecord
		}
		copy(into[:], v)
		return nil
	}
	switch tag {
	case tagStream:
		r.Stream = eventlog.Stream(v)
	case tagID:
		return id(&r.ID)
	case tagName:
		r.Name = string(v)
	case tagData:
		r.Data = v // the block has no other user
	case tagCorrelation:
		return id(&r.Meta.Correlation)
	case tagCausation:
		return id(&r.Meta.Causation)
	case tagActor:
		r.Meta.Actor = string(v)
	case tagTrace:
		r.Meta.Trace = string(v)
	case tagLink:
		if len(v) != len(r.Meta.Link) {
			return errRecord
		}
		copy(r.Meta.Link[:], v)
	default:
		return fmt.Errorf("%w: field %d", errRecord, tag)
	}
	return nil
}

func takeNumber(b []byte) (uint64, []byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errRecord
	}
	return n, b[size:], nil
}

func takeBytes(b []byte) (v, rest []byte, err error) {
	n, rest, err := takeNumber(b)
	if err != nil || n > uint64(len(rest)) {
		return nil, nil, errRecord
	}
	return rest[:n:n], rest[n:], nil
}
