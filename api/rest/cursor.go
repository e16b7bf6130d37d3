package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// CursorKeyBytes is the minimum length of the key that authenticates cursors.
const CursorKeyBytes = 32

const macBytes = 16

// cursorAfter returns the cursor for the part of a list after a position. The cursor is invalid
// for a list with other filters.
func cursorAfter(key []byte, p eventlog.Position, filters string) string {
	return cursorOf(key, filters, uint64(p))
}

// cursorOf is cursorAfter for a place that takes several numbers to name.
func cursorOf(key []byte, filters string, place ...uint64) string {
	b := []byte{byte(len(place))} // the count of numbers, the numbers, the MAC
	for _, n := range place {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, cursorMAC(key, b, filters)...))
}

// readCursor reads a cursor, and refuses a cursor that this service did not make for this list.
func readCursor(key []byte, cursor, filters string) (eventlog.Position, error) {
	place, err := readPlace(key, cursor, filters, 1)
	if err != nil {
		return 0, err
	}
	return eventlog.Position(place[0]), nil
}

// readPlace is readCursor for a place of several numbers.
func readPlace(key []byte, cursor, filters string, numbers int) ([]uint64, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 1+8*numbers+macBytes {
		return nil, InParameter("cursor", ErrInvalidCursor.Because("the cursor must come from an earlier page of the same list"))
	}
	place := make([]uint64, numbers)
	for i := range place {
		place[i] = binary.BigEndian.Uint64(b[1+8*i:])
	}
	// base64 can encode the same bytes in several ways. Comparing the text allows only one
	// cursor for a place.
	if !hmac.Equal([]byte(cursor), []byte(cursorOf(key, filters, place...))) {
		return nil, InParameter("cursor", ErrInvalidCursor.Because("the cursor belongs to a list with other filters, or was altered"))
	}
	return place, nil
}

func cursorMAC(key, content []byte, filters string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("GET /v1/transactions\n")) // separates this use of the key from others
	h.Write(content)                          // its first byte determines its length
	h.Write([]byte(filters))
	return h.Sum(nil)[:macBytes]
}
