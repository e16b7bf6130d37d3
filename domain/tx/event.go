package tx

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one signed transaction.
//
//sumtype:decl
type Event interface{ fact() }

// Accepted: the bytes are kept, and delivering them is promised. Absent → Queued.
type Accepted struct {
	Chain      chain.ID            `json:"chain"`
	Hash       chain.Hash          `json:"hash"`
	Type       uint8               `json:"type"`
	Sender     chain.Address       `json:"sender"`
	Signature  chain.SignatureKind `json:"signature"`
	AccessKey  *chain.Address      `json:"accessKey,omitempty"`
	Authorized bool                `json:"authorized,omitempty"` // the sender's own key signed for AccessKey in the same bytes
	FeePayer   *chain.Address      `json:"feePayer,omitempty"`
	NonceKey   chain.NonceKey      `json:"nonceKey"`
	Nonce      uint64              `json:"nonce"`
	Group      *chain.GroupID      `json:"group,omitempty"`
	Window     chain.Window        `json:"window,omitzero"`
	EligibleAt uint64              `json:"eligibleAt"` // Unix seconds: not sent before
	Bytes      int                 `json:"bytes"`      // length of what was received
	RawHash    chain.Hash          `json:"rawHash"`    // Keccak-256 of what was received
	// Client is the client that submitted it first; empty when no key was needed, and
	// in events recorded before clients had names.
	Client string    `json:"client,omitempty"`
	At     time.Time `json:"at"`
}

// Opens is when the transaction's window does, in Unix seconds; 0 when it is open from
// the beginning. EligibleAt is no earlier than the acceptance by the clock of who
// accepted, which may be wrong by hours: nothing waits for that clock.
func (a Accepted) Opens() uint64 {
	if at := a.At.Unix(); at < 0 || a.EligibleAt > uint64(at) {
		return a.EligibleAt // the window decided
	}
	return a.Window.After
}

// Resubmitted: another client submitted the same bytes. The transaction belongs to
// that client as well. The status stays.
type Resubmitted struct {
	Client string    `json:"client"`
	At     time.Time `json:"at"`
}

// Broadcast: at least one endpoint took the bytes or had them. → Broadcasting.
type Broadcast struct {
	Attempt int       `json:"attempt"`
	Answers []Answer  `json:"answers"`
	At      time.Time `json:"at"`
}

// Rejected: no endpoint is known to have taken the bytes. → RetryScheduled, or
// Invalid when permanent.
type Rejected struct {
	Attempt   int       `json:"attempt"`
	Class     Class     `json:"class"`
	Cause     Cause     `json:"cause,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Permanent bool      `json:"permanent,omitempty"`
	Answers   []Answer  `json:"answers"`
	At        time.Time `json:"at"`
}

// Mined: a block holds the transaction. → Executed, whatever the receipt's status.
type Mined struct {
	Receipt chain.Receipt `json:"receipt"`
	At      time.Time     `json:"at"`
}

// StaleByNonce: at this block the nonce is used, and not by us. → StaleByNonce.
type StaleByNonce struct {
	Block   chain.Block `json:"block"`
	Current uint64      `json:"current"` // the next nonce the chain wants
	At      time.Time   `json:"at"`
}

// Expired: this block is too late for us, and we are in none before. → Expired.
type Expired struct {
	Block chain.Block `json:"block"`
	At    time.Time   `json:"at"`
}

// Reorged: the block the verdict rests on has left the chain. → Broadcasting; or,
// when the bytes are unwanted, back to CanceledLocally or Invalid.
type Reorged struct {
	Was      chain.Block `json:"was"`
	Now      chain.Block `json:"now"` // what the chain has at that height, or above
	Unwanted bool        `json:"unwanted,omitempty"`
	At       time.Time   `json:"at"`
}

// Finalized: the verdict's block can no longer leave the chain. The verdict is sealed.
type Finalized struct {
	Verdict Status      `json:"verdict"`
	Block   chain.Block `json:"block"`
	By      chain.Block `json:"by"` // the final block that seals it
	At      time.Time   `json:"at"`
}

// FinalityViolated: the chain contradicts a sealed verdict. Nothing more is done
// with the transaction until an operator decides.
type FinalityViolated struct {
	Verdict Status      `json:"verdict"`
	Was     chain.Block `json:"was"`
	Now     chain.Block `json:"now"`
	At      time.Time   `json:"at"`
}

// CanceledLocally: its owner wants it sent no more. The chain may have it all the
// same: a verdict that was announced before stands.
type CanceledLocally struct {
	Reason  string    `json:"reason"`
	Verdict Status    `json:"verdict,omitempty"`
	At      time.Time `json:"at"`
}

// GroupDoubted: the chain does not say that the access key may sign in the sender's
// name, so that the sender, and with it any group, is only claimed. It is asked again.
type GroupDoubted struct {
	Reason string      `json:"reason"`
	Block  chain.Block `json:"block"` // at which the chain was asked
	At     time.Time   `json:"at"`
}

// GroupConfirmed: at this block the access key may sign in the sender's name, or
// the transaction is in it. The sender is its own, and so is any group.
type GroupConfirmed struct {
	Block chain.Block `json:"block"`
	At    time.Time   `json:"at"`
}

// PayloadErased: the signed bytes are gone from every medium of ours.
type PayloadErased struct {
	At time.Time `json:"at"`
}

// Retired: past retention, read models forget it.
type Retired struct {
	At time.Time `json:"at"`
}

func (Accepted) fact()         {}
func (Resubmitted) fact()      {}
func (Broadcast) fact()        {}
func (Rejected) fact()         {}
func (Mined) fact()            {}
func (StaleByNonce) fact()     {}
func (Expired) fact()          {}
func (Reorged) fact()          {}
func (Finalized) fact()        {}
func (FinalityViolated) fact() {}
func (CanceledLocally) fact()  {}
func (GroupDoubted) fact()     {}
func (GroupConfirmed) fact()   {}
func (PayloadErased) fact()    {}
func (Retired) fact()          {}

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.Quick[Event]("tx.accepted.v1", scanAccepted),
		event.As[Event, Resubmitted]("tx.resubmitted.v1"),
		event.Quick[Event]("tx.broadcast.v1", scanBroadcast),
		event.Quick[Event]("tx.rejected.v1", scanRejected),
		event.Quick[Event]("tx.mined.v1", scanMined),
		event.As[Event, StaleByNonce]("tx.stale_by_nonce.v1"),
		event.As[Event, Expired]("tx.expired.v1"),
		event.As[Event, Reorged]("tx.reorged.v1"),
		event.Quick[Event]("tx.finalized.v1", scanFinalized),
		event.As[Event, FinalityViolated]("tx.finality_violated.v1"),
		event.As[Event, CanceledLocally]("tx.canceled_locally.v2"),
		event.From("tx.canceled_locally.v1", canceledV1.up),
		event.As[Event, GroupDoubted]("tx.group_doubted.v1"),
		event.As[Event, GroupConfirmed]("tx.group_confirmed.v1"),
		event.Quick[Event]("tx.payload_erased.v1", scanErased),
		event.As[Event, Retired]("tx.retired.v1"),
	)
}

// StreamPrefix begins the name of every transaction's stream.
const StreamPrefix = "tx-"

// Stream names a transaction's events.
func Stream(id chain.ID, hash chain.Hash) event.Stream {
	return event.Stream(StreamPrefix + id.String() + "-" + hash.String())
}

// ParseStream reads chain and hash off the name that [Stream] gave.
func ParseStream(s event.Stream) (id chain.ID, hash chain.Hash, err error) {
	rest, ok := strings.CutPrefix(string(s), StreamPrefix)
	number, digits, cut := strings.Cut(rest, "-")
	if !ok || !cut {
		return 0, hash, fmt.Errorf("stream %q is not a transaction's", s)
	}
	if id, err = chain.ParseID(number); err != nil {
		return 0, hash, fmt.Errorf("stream %q: %w", s, err)
	}
	if hash, err = chain.ParseHash(digits); err != nil {
		return 0, hash, fmt.Errorf("stream %q: %w", s, err)
	}
	return id, hash, nil
}
