package access

import (
	"encoding/hex"
	"fmt"
	"time"
)

// SessionID identifies a person's session at the console, which a key began. A session is in no event until
// it is ended: its cookie says which key it has and how long.
type SessionID [16]byte

// String is 32 hex digits.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *SessionID) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(id[:], text[:min(len(text), 2*len(id))]); err != nil || n != len(id) || len(text) != 2*n {
		return fmt.Errorf("a session's id is %d hex digits", 2*len(id))
	}
	return nil
}

// SessionEnded: the session gives no access any more, at any replica.
type SessionEnded struct {
	ID    SessionID `json:"id"`
	Key   KeyID     `json:"key"`
	Until time.Time `json:"until"` // when it would have ended by itself
	At    time.Time `json:"at"`
}

// EndSession requests that a session be ended.
type EndSession SessionEnded

// sessionsMax bounds the ended sessions that are remembered. Each is forgotten when it would have ended.
const sessionsMax = 10_000

func (s State) endSession(c EndSession) ([]Event, error) {
	_, known := s.Keys[c.Key]
	_, ended := s.Ended[c.ID]
	switch {
	case !known:
		return nil, ErrUnknownKey
	case ended, !c.At.Before(c.Until):
		return nil, nil
	case len(s.Ended) >= sessionsMax:
		return nil, ErrTooManyKeys.Because("%d sessions were ended that are not over yet", len(s.Ended))
	}
	return []Event{SessionEnded(c)}, nil
}

// withEnded is the ended sessions with one more, without those that are over by now.
func (s State) withEnded(e SessionEnded) map[SessionID]time.Time {
	ended := map[SessionID]time.Time{e.ID: e.Until}
	for id, until := range s.Ended {
		if e.At.Before(until) {
			ended[id] = until
		}
	}
	return ended
}
