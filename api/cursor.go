package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// CursorKeyBytes is the least length of the key that authenticates cursors.
const CursorKeyBytes = 32

const macBytes = 16

// cursorAfter makes the cursor of what comes after a position in a list. It is
// worth nothing in a list with other filters.
func cursorAfter(key []byte, p event.Position, filters string) string {
	return cursorOf(key, filters, uint64(p))
}

// cursorOf is cursorAfter for a place in a list that takes several numbers to name.
func cursorOf(key []byte, filters string, place ...uint64) string {
	b := []byte{byte(len(place))} // how many numbers, then they, then the MAC
	for _, n := range place {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, cursorMAC(key, b, filters)...))
}

// readCursor refuses what this service has not made for this list.
func readCursor(key []byte, cursor, filters string) (event.Position, error) {
	place, err := readPlace(key, cursor, filters, 1)
	if err != nil {
		return 0, err
	}
	return event.Position(place[0]), nil
}

// readPlace is readCursor for a place of several numbers.
func readPlace(key []byte, cursor, filters string, numbers int) ([]uint64, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 1+8*numbers+macBytes {
		return nil, ErrInvalidCursor.Because("a cursor comes from an earlier page of the same list")
	}
	place := make([]uint64, numbers)
	for i := range place {
		place[i] = binary.BigEndian.Uint64(b[1+8*i:])
	}
	// There is one cursor for a place in a list, and base64 can be written in many
	// ways: it is the text that is compared.
	if !hmac.Equal([]byte(cursor), []byte(cursorOf(key, filters, place...))) {
		return nil, ErrInvalidCursor.Because("the cursor is of a list with other filters, or was changed")
	}
	return place, nil
}

func cursorMAC(key, content []byte, filters string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("GET /v1/transactions\n")) // keeps the key usable for other purposes
	h.Write(content)                          // whose first byte tells its length
	h.Write([]byte(filters))
	return h.Sum(nil)[:macBytes]
}
