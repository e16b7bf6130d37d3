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

const (
	cursorVersion = 1
	macBytes      = 16
	cursorBytes   = 1 + 8 + macBytes // version, position, MAC
)

// cursorAfter makes the cursor of what comes after a position in a list. It is
// worth nothing in a list with other filters.
func cursorAfter(key []byte, p event.Position, filters string) string {
	b := binary.BigEndian.AppendUint64([]byte{cursorVersion}, uint64(p))
	return base64.RawURLEncoding.EncodeToString(append(b, cursorMAC(key, b, filters)...))
}

// readCursor refuses what this service has not made for this list.
func readCursor(key []byte, cursor, filters string) (event.Position, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes {
		return 0, ErrInvalidCursor.Because("a cursor comes from nextCursor of an earlier page")
	}
	p := event.Position(binary.BigEndian.Uint64(b[1:]))
	// There is one cursor for a place in a list, and base64 can be written in many
	// ways: it is the text that is compared.
	if !hmac.Equal([]byte(cursor), []byte(cursorAfter(key, p, filters))) {
		return 0, ErrInvalidCursor.Because("the cursor is of a list with other filters, or was changed")
	}
	return p, nil
}

func cursorMAC(key, content []byte, filters string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("GET /v1/transactions\n")) // keeps the key usable for other lists
	h.Write(content)                          // of fixed length
	h.Write([]byte(filters))
	return h.Sum(nil)[:macBytes]
}
