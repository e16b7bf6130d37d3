package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

const (
	// piece is how much is made room for at once, when a large reply does not say how
	// large it is.
	piece = 1 << 20
	// prelude is what of a large reply is looked at before more of it is read.
	prelude = 64 << 10
)

// errNotJSON is a reply whose beginning is not that of a JSON text.
var errNotJSON = errors.New("reply is not JSON-RPC: it is large, and its beginning is not a reply's")

// isUnfit reports whether an error says that a reply arrived, and cannot be one.
func isUnfit(err error) bool { return isTooLarge(err) || errors.Is(err, errNotJSON) }

// read reads a body that says how long it is, or is said to have -1 bytes. No more is
// read than the limit and a byte: then the error is tooLarge. Of large replies few are
// read at once, or an endpoint could fill our memory with as many as may be under way,
// and none that has not begun as a reply does.
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

// isBegun reports whether a text is that of a JSON value up to somewhere within it.
func isBegun(text []byte) bool {
	var value json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(text)).Decode(&value), io.ErrUnexpectedEOF)
}

// readOn reads what follows the first part of a body. It makes room for the whole when
// it knows how large that is, else piece by piece: a buffer that grows would leave as
// much behind as it has read, and one that turns out too large is never put together.
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
			return nil, err // also of a body that was cut off
		}
		pieces, size = append(pieces, next.Bytes()), size+n
		if n < want {
			return bytes.Join(pieces, nil), nil
		}
	}
	return nil, tooLarge(limit)
}
