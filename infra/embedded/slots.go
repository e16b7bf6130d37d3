package embedded

import (
	"math/bits"

	"zombiezen.com/go/sqlite"
)

// Slots hold content that must be erasable: see the table's comment. A slot is
// cleared, and later filled again with content of its length.

// slotLeast is the smallest difference between two slot lengths, in bytes.
const slotLeast = 64

// slotLength is the slot length for some content. There are few lengths, so that cleared slots
// are reused, and at most an eighth is wasted.
func slotLength(content int) int {
	step := max(slotLeast, 1<<bits.Len(uint(content))/16)
	return (max(content, 1) + step - 1) / step * step
}

// fillSlot puts content into a free slot of its length, or into a new one.
func fillSlot(conn *sqlite.Conn, content []byte) (no int64, err error) {
	padded := make([]byte, slotLength(len(content)))
	copy(padded, content)
	err = query(conn, "SELECT no FROM slots WHERE free = 1 AND length(bytes) = ? LIMIT 1", func(s *sqlite.Stmt) bool {
		no = s.ColumnInt64(0)
		return false
	}, int64(len(padded)))
	switch {
	case err != nil:
		return 0, err
	case no != 0:
		return no, exec(conn, "UPDATE slots SET free = 0, bytes = ? WHERE no = ?", padded, no)
	}
	err = exec(conn, "INSERT INTO slots (free, bytes) VALUES (0, ?)", padded)
	return conn.LastInsertRowID(), err
}

// slotContent reads content from columns that begin with its size and the slot's bytes.
func slotContent(s *sqlite.Stmt) []byte {
	return columnBytes(s, 1)[:s.ColumnInt64(0)]
}

// clearSlot overwrites a slot in place.
func clearSlot(conn *sqlite.Conn, no int64) error {
	return exec(conn, "UPDATE slots SET free = 1, bytes = zeroblob(length(bytes)) WHERE no = ?", no)
}

// clearSlots clears the slots that a query lists.
func clearSlots(conn *sqlite.Conn, text string, args ...any) error {
	var slots []int64
	err := query(conn, text, func(s *sqlite.Stmt) bool {
		slots = append(slots, s.ColumnInt64(0))
		return true
	}, args...)
	for _, no := range slots {
		if err == nil {
			err = clearSlot(conn, no)
		}
	}
	return err
}
