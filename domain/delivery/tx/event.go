package tx

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one signed transaction.
//
//sumtype:decl
type Event interface{ fact() }

// Accepted: the bytes are stored, and their delivery is promised. Absent → Queued.
type Accepted struct {
	Chain      chain.ID            `json:"chain"`
	Hash       chain.Hash          `json:"hash"`
	Type       uint8               `json:"type"`
	Sender     chain.Address       `json:"sender"`
	Signature  chain.SignatureKind `json:"signature"`
	AccessKey  *chain.Address      `json:"accessKey,omitempty"`
	Authorized bool                `json:"authorized,omitempty"` // the sender's own key authorized AccessKey in the same bytes
	FeePayer   *chain.Address      `json:"feePayer,omitempty"`
	NonceKey   chain.NonceKey      `json:"nonceKey"`
	Nonce      uint64              `json:"nonce"`
	Group      *chain.GroupID      `json:"group,omitempty"`
	Window     chain.Window        `json:"window,omitzero"`
	EligibleAt uint64              `json:"eligibleAt"` // Unix seconds: earliest time to send
	Bytes      int                 `json:"bytes"`      // length of the received bytes
	RawHash    chain.Hash          `json:"rawHash"`    // Keccak-256 of the received bytes
	// Client is the client that submitted the transaction first. It is empty if no API key was
	// needed, and in events recorded before clients had names.
	Client string    `json:"client,omitempty"`
	At     time.Time `json:"at"`
}

// Opens returns when the transaction's window opens, in Unix seconds; 0 if it has no start.
// EligibleAt is never before the acceptance time, which comes from the acceptor's clock. That
// clock may be wrong by hours, so Opens ignores an EligibleAt that it decided.
func (a Accepted) Opens() uint64 {
	if at := a.At.Unix(); at < 0 || a.EligibleAt > uint64(at) {
		return a.EligibleAt // the window decided
	}
	return a.Window.After
}

// Resubmitted: another client submitted the same bytes and is now an owner too. The status is
// unchanged.
type Resubmitted struct {
	Client string `json:"client"`
	// Terms are what the due queue needs to know of the transaction, so that nothing is read for the
	// event. In older events they are nil, and the terms of the stream's first event apply.
	Terms *Terms    `json:"terms,omitempty"`
	At    time.Time `json:"at"`
}

// Terms are the facts about a transaction that decide when a further owner's turn comes.
type Terms struct {
	Payer     chain.Address  `json:"payer"` // the fee payer, or else the sender
	AccessKey *chain.Address `json:"accessKey,omitempty"`
	Opens     uint64         `json:"opens,omitempty"` // as [Accepted.Opens]
	// Sealed: the verdict is final, so the bytes are never sent again, in nobody's turn.
	Sealed bool `json:"sealed,omitempty"`
}

// Terms returns the terms of a transaction without a final verdict.
func (a Accepted) Terms() Terms {
	t := Terms{Payer: a.Sender, AccessKey: a.AccessKey, Opens: a.Opens()}
	if a.FeePayer != nil {
		t.Payer = *a.FeePayer
	}
	return t
}

// Broadcast: at least one endpoint accepted the bytes or already had them. → Broadcasting.
type Broadcast struct {
	Attempt int       `json:"attempt"`
	Answers []Answer  `json:"answers"`
	At      time.Time `json:"at"`
}

// Rejected: no endpoint is known to have accepted the bytes. → RetryScheduled, or Invalid when
// permanent.
type Rejected struct {
	Attempt   int       `json:"attempt"`
	Class     Class     `json:"class"`
	Cause     Cause     `json:"cause,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Permanent bool      `json:"permanent,omitempty"`
	Answers   []Answer  `json:"answers"`
	At        time.Time `json:"at"`
}

// Mined: a block contains the transaction. → Executed, for any receipt status.
type Mined struct {
	Receipt chain.Receipt `json:"receipt"`
	At      time.Time     `json:"at"`
}

// StaleByNonce: at this block another transaction has used the nonce. → StaleByNonce.
type StaleByNonce struct {
	Block   chain.Block `json:"block"`
	Current uint64      `json:"current"` // the chain's next nonce
	At      time.Time   `json:"at"`
}

// Expired: this block is past validBefore, and no earlier block contains the transaction. →
// Expired.
type Expired struct {
	Block chain.Block `json:"block"`
	At    time.Time   `json:"at"`
}

// Reorged: the verdict's block left the chain. → Broadcasting; or, when the bytes are unwanted,
// back to CanceledLocally or Invalid.
type Reorged struct {
	Was      chain.Block `json:"was"`
	Now      chain.Block `json:"now"` // the chain's block at that height, or above
	Unwanted bool        `json:"unwanted,omitempty"`
	At       time.Time   `json:"at"`
}

// Finalized: the verdict's block is final, and the verdict is sealed.
type Finalized struct {
	Verdict Status      `json:"verdict"`
	Block   chain.Block `json:"block"`
	By      chain.Block `json:"by"` // the final block that seals the verdict
	At      time.Time   `json:"at"`
}

// FinalityViolated: the chain contradicts a sealed verdict. Processing of the transaction stops
// until an operator decides.
type FinalityViolated struct {
	Verdict Status      `json:"verdict"`
	Was     chain.Block `json:"was"`
	Now     chain.Block `json:"now"`
	At      time.Time   `json:"at"`
}

// CanceledLocally: the owner canceled sending. The chain may still include the transaction, and a
// verdict announced before stays.
type CanceledLocally struct {
	Reason  string    `json:"reason"`
	Verdict Status    `json:"verdict,omitempty"`
	At      time.Time `json:"at"`
}

// GroupDoubted: the chain does not confirm that the access key may sign for the sender. The
// sender, and with it any group, is only claimed. The check is repeated.
type GroupDoubted struct {
	Reason string      `json:"reason"`
	Block  chain.Block `json:"block"` // the block at which the chain was asked
	At     time.Time   `json:"at"`
}

// GroupConfirmed: at this block the access key may sign for the sender, or the block contains the
// transaction. The sender and any group are confirmed.
type GroupConfirmed struct {
	Block chain.Block `json:"block"`
	At    time.Time   `json:"at"`
}

// PayloadErased: the signed bytes are erased from all of our storage.
type PayloadErased struct {
	At time.Time `json:"at"`
}

// Retired: retention is over, and read models drop the transaction.
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

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.Quick[Event]("tx.accepted.v1", scanAccepted),
		eventlog.As[Event, Resubmitted]("tx.resubmitted.v1"),
		eventlog.Quick[Event]("tx.broadcast.v1", scanBroadcast),
		eventlog.Quick[Event]("tx.rejected.v1", scanRejected),
		eventlog.Quick[Event]("tx.mined.v1", scanMined),
		eventlog.As[Event, StaleByNonce]("tx.stale_by_nonce.v1"),
		eventlog.As[Event, Expired]("tx.expired.v1"),
		eventlog.As[Event, Reorged]("tx.reorged.v1"),
		eventlog.Quick[Event]("tx.finalized.v1", scanFinalized),
		eventlog.As[Event, FinalityViolated]("tx.finality_violated.v1"),
		eventlog.As[Event, CanceledLocally]("tx.canceled_locally.v2"),
		eventlog.From("tx.canceled_locally.v1", canceledV1.up),
		eventlog.As[Event, GroupDoubted]("tx.group_doubted.v1"),
		eventlog.As[Event, GroupConfirmed]("tx.group_confirmed.v1"),
		eventlog.Quick[Event]("tx.payload_erased.v1", scanErased),
		eventlog.As[Event, Retired]("tx.retired.v1"),
	)
}

// StreamPrefix is the prefix of every transaction's stream name.
const StreamPrefix = "tx-"

// Stream returns the name of a transaction's event stream.
func Stream(id chain.ID, hash chain.Hash) eventlog.Stream {
	return eventlog.Stream(StreamPrefix + id.String() + "-" + hash.String())
}

// ParseStream returns the chain and hash in a name made by [Stream].
func ParseStream(s eventlog.Stream) (id chain.ID, hash chain.Hash, err error) {
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
