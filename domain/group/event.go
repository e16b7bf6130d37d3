package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one group.
//
//sumtype:decl
type Event interface{ fact() }

// Joined: an accepted transaction is a member. The first one makes the group.
type Joined struct {
	Chain      chain.ID       `json:"chain"`
	Sender     chain.Address  `json:"sender"`
	Group      chain.GroupID  `json:"group"`
	Hash       chain.Hash     `json:"hash"`
	NonceKey   chain.NonceKey `json:"nonceKey"`
	Nonce      uint64         `json:"nonce"`
	EligibleAt uint64         `json:"eligibleAt"`          // Unix seconds
	ExpiresAt  uint64         `json:"expiresAt,omitempty"` // Unix seconds, 0 never
	// AccessKey is what signed in the sender's name, and Confirmed the block at
	// which the chain said that it may. Both are nil when the sender itself signed.
	AccessKey *chain.Address `json:"accessKey,omitempty"`
	Confirmed *chain.Block   `json:"confirmed,omitempty"`
	At        time.Time      `json:"at"`
}

// Canceled: the owner wants those members sent no more that had joined by then:
// the first Members of the group, in the order of joining.
type Canceled struct {
	Members int       `json:"members"`
	By      Authority `json:"by"`
	At      time.Time `json:"at"`
}

// Authority is how the owner proved the wish.
type Authority struct {
	Form      Form                `json:"form"`
	Signature chain.SignatureKind `json:"signature"`
	// Digest is what was signed, and Expires until when it counts, in Unix seconds
	// (0 for ever).
	Digest  chain.Hash `json:"digest"`
	Expires uint64     `json:"expires,omitempty"`
}

// Form is what an owner signs to cancel a group.
type Form string

const (
	// FormGroupID signs keccak256 of the group's id. It counts once for a group: a
	// stranger who has seen the signature can show it to other services only.
	FormGroupID Form = "group-id"
	// FormTyped signs typed data that names deployment, chain, group and an
	// expiry, and counts once.
	FormTyped Form = "typed-data"
)

func (Joined) fact()   {}
func (Canceled) fact() {}

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, Joined]("group.joined.v1"),
		event.As[Event, Canceled]("group.canceled.v1"),
	)
}

// StreamPrefix begins the name of every group's stream.
const StreamPrefix = "group-"

// ID is which group: the same sender and group id on two chains are two groups.
type ID struct {
	Chain  chain.ID
	Sender chain.Address
	Group  chain.GroupID
}

// Stream names a group's events.
func (id ID) Stream() event.Stream {
	return event.Stream(StreamPrefix + id.Chain.String() + "-" + id.Sender.String() + "-" + id.Group.String())
}

// InOrder are the keys of a map in the order of their streams' names, so that what is done
// for one group after the other is done in one order.
func InOrder[V any](m map[ID]V) []ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b ID) int { return cmp.Compare(a.Stream(), b.Stream()) })
}

// ParseStream reads a group's id off the name that [ID.Stream] gave.
func ParseStream(s event.Stream) (id ID, err error) {
	rest, ok := strings.CutPrefix(string(s), StreamPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 3 {
		return ID{}, fmt.Errorf("stream %q is not a group's", s)
	}
	if id.Chain, err = chain.ParseID(parts[0]); err == nil {
		if id.Sender, err = chain.ParseAddress(parts[1]); err == nil {
			id.Group, err = chain.ParseGroupID(parts[2])
		}
	}
	if err != nil {
		return ID{}, fmt.Errorf("stream %q: %w", s, err)
	}
	return id, nil
}
