package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestCursor(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, CursorKeyBytes), bytes.Repeat([]byte{2}, CursorKeyBytes)
	const filters = "sender=0x01&status=queued"
	for _, p := range []eventlog.Position{1, 42, 1<<63 - 1} {
		cursor := cursorAfter(key, p, filters)
		if got, err := readCursor(key, cursor, filters); err != nil || got != p {
			t.Fatalf("position %d came back as %d, %v", p, got, err)
		}
		for name, read := range map[string]func() (eventlog.Position, error){
			"other filters":    func() (eventlog.Position, error) { return readCursor(key, cursor, "sender=0x02&status=queued") },
			"no filters":       func() (eventlog.Position, error) { return readCursor(key, cursor, "") },
			"another key":      func() (eventlog.Position, error) { return readCursor(other, cursor, filters) },
			"cut short":        func() (eventlog.Position, error) { return readCursor(key, cursor[:len(cursor)-1], filters) },
			"longer":           func() (eventlog.Position, error) { return readCursor(key, cursor+"A", filters) },
			"padded":           func() (eventlog.Position, error) { return readCursor(key, cursor+"=", filters) },
			"with a line feed": func() (eventlog.Position, error) { return readCursor(key, cursor+"\n", filters) },
			"empty":            func() (eventlog.Position, error) { return readCursor(key, "", filters) },
			"SQL":              func() (eventlog.Position, error) { return readCursor(key, "' OR 1=1--", filters) },
		} {
			if _, err := read(); !errors.Is(err, ErrInvalidCursor) {
				t.Errorf("%s: answered %v", name, err)
			}
		}
		b, _ := base64.RawURLEncoding.DecodeString(cursor)
		for i := range b {
			for bit := range 8 {
				forged := bytes.Clone(b)
				forged[i] ^= 1 << bit
				if _, err := readCursor(key, base64.RawURLEncoding.EncodeToString(forged), filters); !errors.Is(err, ErrInvalidCursor) {
					t.Errorf("byte %d bit %d changed: answered %v", i, bit, err)
				}
			}
		}
	}
}

// A cursor for one number is invalid where two are expected, and the other way round.
func TestCursorPlaces(t *testing.T) {
	key := bytes.Repeat([]byte{1}, CursorKeyBytes)
	one, two := cursorOf(key, "f", 7), cursorOf(key, "f", 7, 9)
	if got, err := readPlace(key, two, "f", 2); err != nil || got[0] != 7 || got[1] != 9 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := readPlace(key, one, "f", 2); err == nil {
		t.Errorf("one number was read as %v", got)
	}
	if got, err := readCursor(key, two, "f"); err == nil {
		t.Errorf("two numbers were read as %v", got)
	}
	if got, err := readPlace(key, two, "g", 2); err == nil {
		t.Errorf("with other filters: %v", got)
	}
}

func FuzzCursor(f *testing.F) {
	key := bytes.Repeat([]byte{1}, CursorKeyBytes)
	f.Add("", "")
	f.Add(cursorAfter(key, 7, "status=queued"), "status=queued")
	f.Add(cursorAfter(key, 7, "status=queued"), "status=expired")
	f.Fuzz(func(t *testing.T, cursor, filters string) {
		p, err := readCursor(key, cursor, filters)
		if err == nil && cursorAfter(key, p, filters) != cursor {
			t.Fatalf("%q was taken for position %d, whose cursor is another", cursor, p)
		}
	})
}
