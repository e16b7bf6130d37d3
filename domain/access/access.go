package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Stream holds the events of all keys: there are few, and access is decided over all of them.
const Stream eventlog.Stream = "access-keys"

// Event is a fact about API keys.
//
//sumtype:decl
type Event interface{ fact() }

// KeyCreated: the key's secret gives access from now on.
type KeyCreated struct {
	Key
	At time.Time `json:"at"`
}

// KeyRevoked: the key gives no access any more.
type KeyRevoked struct {
	ID     KeyID     `json:"id"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

func (KeyCreated) fact()   {}
func (KeyRevoked) fact()   {}
func (SessionEnded) fact() {}

// Codec maps event types to stored names, which never change.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, KeyCreated]("access.key_created.v1"),
		eventlog.As[Event, KeyRevoked]("access.key_revoked.v1"),
		eventlog.As[Event, SessionEnded]("access.session_ended.v1"),
	)
}

// Command is a request to change the keys.
//
//sumtype:decl
type Command interface{ wish() }

// Create requests a new key.
type Create KeyCreated

// Revoke requests that a key be disabled.
type Revoke KeyRevoked

func (Create) wish()     {}
func (Revoke) wish()     {}
func (EndSession) wish() {}

// Refusals of key commands and quotas.
const (
	ErrUnknownKey  = eventlog.Refusal("unknown-key")
	ErrInvalidKey  = eventlog.Refusal("invalid-key")
	ErrTooManyKeys = eventlog.Refusal("too-many-keys")
	// ErrQuotaExceeded refuses a request that would exceed a quota of its client. The detail
	// contains the quota, its limit and the present use.
	ErrQuotaExceeded = eventlog.Refusal("quota-exceeded")
)

// Bounds of the keys.
const (
	KeysMax    = 1000 // in force at the same time
	SendersMax = 256
	textMax    = 128 // bytes of a name or a reason
	clientMax  = 64  // bytes of a client's name, as in intents
	poolMax    = 64  // bytes of a pool's name, as in intents
	// SignersMax and PoolsMax bound what a key names of the relay.
	SignersMax = 256
	PoolsMax   = 64
)

// State is all keys ever created.
type State struct {
	Keys map[KeyID]Entry
	// Ended are the sessions that were ended before their time, with that time.
	Ended map[SessionID]time.Time
}

// Entry is a key with its history.
type Entry struct {
	Key       Key
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
	Reason    string    // of the revocation
}

// InForce reports whether a key is valid at a time.
func (e Entry) InForce(now time.Time) bool {
	return e.RevokedAt.IsZero() && (e.Key.ExpiresAt == 0 || now.Unix() < int64(e.Key.ExpiresAt))
}

// Closed reports whether the service requires a key: from the first key on, for ever. Revoking
// the last key must not open the service to everybody.
func (s State) Closed() bool { return len(s.Keys) > 0 }

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Create:
		return s.create(c)
	case Revoke:
		return s.revoke(c)
	case EndSession:
		return s.endSession(c)
	}
	panic(fmt.Sprintf("access: unknown command %T", c))
}

func (s State) create(c Create) ([]Event, error) {
	if known, ok := s.Keys[c.ID]; ok {
		if known.Key.Digest == c.Digest {
			return nil, nil
		}
		return nil, ErrInvalidKey.Because("the id %s is taken", c.ID)
	}
	if err := c.check(c.At); err != nil {
		return nil, err
	}
	var err error
	if c.Client, err = s.clientNamed(c.Client); err != nil {
		return nil, err
	}
	inForce := 0
	for _, e := range s.Keys {
		if e.InForce(c.At) {
			inForce++
		}
	}
	if inForce >= KeysMax {
		return nil, ErrTooManyKeys.Because("%d keys are in force", inForce)
	}
	c.Scopes = slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	c.Senders, c.Signers = sorted(c.Senders), sorted(c.Signers)
	c.Pools = slices.Compact(slices.Sorted(slices.Values(c.Pools)))
	return []Event{KeyCreated(c)}, nil
}

// sorted returns addresses in order, each once; nil for none.
func sorted(all []chain.Address) []chain.Address {
	return slices.Compact(slices.SortedFunc(slices.Values(all), func(a, b chain.Address) int { return slices.Compare(a[:], b[:]) }))
}

// clientNamed returns the client of a new key. An older key's id stands for that key's client; an
// id without a key is a mistake, not a name.
func (s State) clientNamed(name string) (string, error) {
	var id KeyID
	if id.UnmarshalText([]byte(name)) != nil {
		return name, nil
	}
	entry, ok := s.Keys[id]
	if !ok {
		return "", ErrInvalidKey.Because("the client %s has the form of a key's id, but there is no such key", name)
	}
	return entry.Key.Owner(), nil
}

func (k Key) check(now time.Time) error {
	switch {
	case k.Name == "" || !isText(k.Name):
		return ErrInvalidKey.Because("a name has 1 to %d bytes of printable text", textMax)
	case !isClient(k.Client):
		return ErrInvalidKey.Because("a client's name is 1 to %d of A-Z, a-z, 0-9 and ._:-", clientMax)
	case len(k.Scopes) == 0:
		return ErrInvalidKey.Because("a key needs a scope")
	case len(k.Senders) > SendersMax:
		return ErrInvalidKey.Because("at most %d senders can be listed", SendersMax)
	case len(k.Signers) > SignersMax || len(k.Pools) > PoolsMax:
		return ErrInvalidKey.Because("at most %d signers and %d pools can be listed", SignersMax, PoolsMax)
	case slices.ContainsFunc(k.Pools, func(name string) bool { return name == "" || len(name) > poolMax || !isName(name) }):
		return ErrInvalidKey.Because("a pool's name is 1 to %d of A-Z, a-z, 0-9 and ._:-", poolMax)
	case k.ExpiresAt != 0 && int64(k.ExpiresAt) <= now.Unix():
		return ErrInvalidKey.Because("its expiry is in the past")
	case k.Rate != nil && (k.Rate.PerSecond < 1 || k.Rate.PerSecond > RateMax || k.Rate.Burst < 1 || k.Rate.Burst > BurstMax):
		return ErrInvalidKey.Because("a rate is 1 to %d per second with a burst of 1 to %d", RateMax, BurstMax)
	}
	for _, s := range k.Scopes {
		if !slices.Contains(Scopes(), s) {
			return ErrInvalidKey.Because("there is no scope %q, only: %s", s, strings.Trim(fmt.Sprint(Scopes()), "[]"))
		}
	}
	return nil
}

func (s State) revoke(c Revoke) ([]Event, error) {
	known, ok := s.Keys[c.ID]
	switch {
	case !ok:
		return nil, ErrUnknownKey.Because("there is no key %s", c.ID)
	case !known.RevokedAt.IsZero():
		return nil, nil
	case !isText(c.Reason):
		return nil, ErrInvalidKey.Because("a reason has at most %d bytes of printable text", textMax)
	}
	return []Event{KeyRevoked(c)}, nil
}

// isClient reports whether s is empty or a client's name as intents accept it.
func isClient(s string) bool { return len(s) <= clientMax && isName(s) }

// isName reports whether s has only characters of names.
func isName(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._:-", c)
	})
}

func isText(s string) bool {
	if len(s) > textMax || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Evolve applies one event. It does not change s.
func (s State) Evolve(e Event) State {
	keys := maps.Clone(s.Keys)
	if keys == nil {
		keys = map[KeyID]Entry{}
	}
	switch e := e.(type) {
	case KeyCreated:
		keys[e.ID] = Entry{Key: e.Key, CreatedAt: e.At}
	case KeyRevoked:
		entry := keys[e.ID]
		entry.RevokedAt, entry.Reason = e.At, e.Reason
		keys[e.ID] = entry
	case SessionEnded:
		s.Ended = s.withEnded(e)
	default:
		panic(fmt.Sprintf("access: unknown event %T", e))
	}
	return State{keys, s.Ended}
}
