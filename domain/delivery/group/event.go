package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one group.
//
//sumtype:decl
type Event interface{ fact() }

// Joined: an accepted transaction is a member. The first one creates the group.
type Joined struct {
	Chain      chain.ID       `json:"chain"`
	Sender     chain.Address  `json:"sender"`
	Group      chain.GroupID  `json:"group"`
	Hash       chain.Hash     `json:"hash"`
	NonceKey   chain.NonceKey `json:"nonceKey"`
	Nonce      uint64         `json:"nonce"`
	EligibleAt uint64         `json:"eligibleAt"`          // Unix seconds
	ExpiresAt  uint64         `json:"expiresAt,omitempty"` // Unix seconds, 0: never
	// AccessKey is the key that signed for the sender, and Confirmed the block at which the chain
	// confirmed its authority. Both are nil if the sender itself signed.
	AccessKey *chain.Address `json:"accessKey,omitempty"`
	Confirmed *chain.Block   `json:"confirmed,omitempty"`
	At        time.Time      `json:"at"`
}

// Canceled: the owner canceled the members present at that time: the first Members of the
// group, in the order of joining.
type Canceled struct {
	Members int       `json:"members"`
	By      Authority `json:"by"`
	At      time.Time `json:"at"`
}

// Authority is the owner's proof for a cancel.
type Authority struct {
	Form      Form                `json:"form"`
	Signature chain.SignatureKind `json:"signature"`
	// Digest is the signed digest. Expires is its expiry in Unix seconds; 0: never.
	Digest  chain.Hash `json:"digest"`
	Expires uint64     `json:"expires,omitempty"`
}

// Form is the content that an owner signs to cancel a group.
type Form string

const (
	// FormGroupID signs keccak256 of the group's id. It counts once per group: others who have
	// seen the signature can use it at other services only.
	FormGroupID Form = "group-id"
	// FormTyped signs typed data with deployment, chain, group and an expiry. It counts once.
	FormTyped Form = "typed-data"
)

func (Joined) fact()   {}
func (Canceled) fact() {}

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Joined]("group.joined.v1"),
		eventlog.As[Event, Canceled]("group.canceled.v1"),
	)
}

// StreamPrefix is the prefix of every group's stream name.
const StreamPrefix = "group-"

// ID identifies a group: the same sender and group id on two chains are two groups.
type ID struct {
	Chain  chain.ID
	Sender chain.Address
	Group  chain.GroupID
}

// Stream returns the name of a group's event stream.
func (id ID) Stream() eventlog.Stream {
	return eventlog.Stream(StreamPrefix + id.Chain.String() + "-" + id.Sender.String() + "-" + id.Group.String())
}

// InOrder returns a map's keys in the order of their stream names, so that groups are processed
// in a fixed order.
func InOrder[V any](m map[ID]V) []ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b ID) int { return cmp.Compare(a.Stream(), b.Stream()) })
}

// ParseStream returns the group's id in a name made by [ID.Stream].
func ParseStream(s eventlog.Stream) (id ID, err error) {
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
