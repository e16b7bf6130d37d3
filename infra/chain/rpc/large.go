package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

const (
	// piece is the buffer size for a large reply of unknown length, in bytes.
	piece = 1 << 20
	// prelude is how many bytes of a large reply are checked before more is read.
	prelude = 64 << 10
)

// errNotJSON means that a reply does not begin like a JSON text.
var errNotJSON = errors.New("reply is not JSON-RPC: it is large, and its beginning is not a reply's")

// isUnfit reports whether a reply arrived and cannot be used.
func isUnfit(err error) bool { return isTooLarge(err) || errors.Is(err, errNotJSON) }

// read reads a body of a declared length, or -1 if unknown. It reads at most limit bytes and
// one more, in which case the error is tooLarge. Only a few large replies are read at once:
// otherwise an endpoint could fill our memory with Concurrency of them. None is read whose
// beginning is not that of a reply.
func (c *client) read(ctx context.Context, body io.Reader, length, limit int64) ([]byte, error) {
	first := bytes.NewBuffer(make([]byte, 0, min(max(length, 0), maxSmallReply)+bytes.MinRead))
	_, err := first.ReadFrom(io.LimitReader(body, min(limit, maxSmallReply)+1))
	switch read := int64(first.Len()); {
	case err != nil:
		return nil, err
	case read > limit:
		return nil, tooLarge(limit)
	case read <= maxSmallReply:
		return first.Bytes(), nil
	case !isBegun(first.Bytes()[:prelude]):
		return nil, errNotJSON
	}
	large := c.large
	if _, theirs := clientOf(ctx); theirs {
		large = c.theirs
	}
	select {
	case large <- struct{}{}:
		defer func() { <-large }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return readOn(first.Bytes(), body, length, limit)
}

// sortedAlone is the size of a reply to a client's call above which one is decoded at a time, in
// bytes. To decode is work for a processor: without a limit, the replies to one client's calls would
// delay everything else that the process does.
const sortedAlone = 32 << 10

// sorting waits until a reply of a size may be decoded. leave ends it.
func (c *client) sorting(ctx context.Context, size int) (leave func(), err error) {
	if _, theirs := clientOf(ctx); !theirs || size <= sortedAlone {
		return func() {}, nil
	}
	select {
	case c.sort <- struct{}{}:
		return func() { <-c.sort }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isBegun reports whether text is the beginning of a JSON value.
func isBegun(text []byte) bool {
	var value json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(text)).Decode(&value), io.ErrUnexpectedEOF)
}

// readOn reads the rest of a body. It allocates the whole if the length is known, otherwise
// piece by piece: a growing buffer would leave as much garbage as it has read. A reply that is
// too large is never assembled.
func readOn(first []byte, body io.Reader, length, limit int64) ([]byte, error) {
	if length > int64(len(first)) {
		whole := make([]byte, length)
		_, err := io.ReadFull(body, whole[copy(whole, first):])
		return whole, err
	}
	pieces, size := [][]byte{first}, int64(len(first))
	for size <= limit {
		want := min(piece, limit+1-size)
		next := bytes.NewBuffer(make([]byte, 0, want+bytes.MinRead))
		n, err := next.ReadFrom(io.LimitReader(body, want))
		if err != nil {
			return nil, err // also if a body was cut off
		}
		pieces, size = append(pieces, next.Bytes()), size+n
		if n < want {
			return bytes.Join(pieces, nil), nil
		}
	}
	return nil, tooLarge(limit)
}
