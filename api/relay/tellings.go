package relay

import (
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	// tellingsMax is the number of positions at the end of the log whose public form is kept: as
	// many as the log's tail keeps in memory.
	tellingsMax = 4096
	// tellingBytes is the size of a public form above which it is not kept, so that all of them
	// take at most 16 MiB.
	tellingBytes = 4 << 10
)

// tellings keep the newest events in their public form, so that an event is decoded and encoded
// once, however many clients follow it. The zero value is empty and ready.
type tellings struct {
	at [tellingsMax]telling // by position, modulo tellingsMax
}

// telling is one event in its public form.
type telling struct {
	mu       sync.Mutex
	position eventlog.Position // 0: none yet
	text     rest.Encoded      // nil if the event is not public
}

// find returns the public form of the event at a position, if it is kept.
func (t *tellings) find(position eventlog.Position) (rest.Encoded, bool) {
	kept := &t.at[position%tellingsMax]
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return kept.text, kept.position == position && position != 0
}

// of returns the public form of the event at a position, and calls encode if it is not kept.
// Callers with the same event wait for the first of them.
func (t *tellings) of(position eventlog.Position, encode func() (rest.Encoded, error)) (rest.Encoded, error) {
	kept := &t.at[position%tellingsMax]
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.position == position {
		return kept.text, nil
	}
	text, err := encode()
	if err == nil && position > kept.position && len(text) <= tellingBytes {
		kept.position, kept.text = position, slices.Clone(text) // without the buffer's spare room
	}
	return text, err
}
