package intent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Notice is what the outside is told of an intent: by a webhook, a stream, or when it
// asks. Whoever applies the notices of an intent by rising Sequence, each once, knows
// what is known here.
type Notice struct {
	Intent   chain.IntentID
	Sequence uint64 // from 1 on, without a gap
	At       time.Time
	Said     Said
}

// Said is what a notice says.
//
//sumtype:decl
type Said interface{ said() }

// TxAccepted: the intent has a nonce. A later one takes the place of this.
type TxAccepted struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    uint64         `json:"nonce"`
}

// TxSubmitted: it was signed, at this nonce for the first time, and is being delivered.
type TxSubmitted struct {
	Hash    chain.Hash `json:"hash"`
	Attempt int        `json:"attempt"` // counts from 1
}

// TxReplaced: another transaction has or competes for the nonce.
type TxReplaced struct {
	Was     chain.Hash `json:"was"`
	Now     chain.Hash `json:"now,omitzero"`
	Attempt int        `json:"attempt,omitempty"` // that Now is; 0 when it is none
	Cause   Cause      `json:"cause"`
}

// Cause is why there is another transaction.
type Cause string

const (
	ByFee    Cause = "fee"    // the same at a higher fee; either may land
	ByCancel Cause = "cancel" // one that does nothing; either may land
	ByRival  Cause = "rival"  // somebody else's is final: the intent gets another nonce
	ByTime   Cause = "time"   // none: it was valid for too short a time, and can land no more
)

// TxReceiptUpdated: a block holds it; or none does, when there is no receipt.
type TxReceiptUpdated struct {
	Hash    chain.Hash     `json:"hash"`
	Receipt *chain.Receipt `json:"receipt"`
}

// TxConfirmed: blocks stand on one another from that of the receipt on. Without a new
// fork they continue the list; with one they are the whole list. When it is done there
// are none.
type TxConfirmed struct {
	Hash          chain.Hash    `json:"hash"`
	Confirmations []chain.Block `json:"confirmations"`
	NewFork       bool          `json:"newFork"`
	Done          bool          `json:"done"`
	// Despite is why it should not have been done: "canceled", "deadline", ….
	Despite Reason `json:"despite,omitempty"`
}

// TxFailed: it will not be done; of a cancel too.
type TxFailed struct {
	Reason Reason     `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	Hash   chain.Hash `json:"hash,omitzero"` // in the chain, that shows it
}

func (TxAccepted) said()       {}
func (TxSubmitted) said()      {}
func (TxReplaced) said()       {}
func (TxReceiptUpdated) said() {}
func (TxConfirmed) said()      {}
func (TxFailed) said()         {}

// Tell is what the outside is told of a fact, if it is told.
func Tell(id chain.IntentID, e Event) (Notice, bool) {
	n := Notice{Intent: id, Sequence: SequenceOf(e)}
	switch e := e.(type) {
	case Assigned:
		n.At, n.Said = e.At, TxAccepted{e.Place.Signer, e.Place.NonceKey, e.Place.Nonce}
	case Requeued:
		cause := ByRival
		if e.Evidence.Kind == Lapsed {
			cause = ByTime
		}
		n.At, n.Said = e.At, TxReplaced{Was: e.Was, Now: e.Evidence.Hash, Cause: cause}
	case Attempted:
		n.At, n.Said = e.At, e.tell()
	case Announced:
		n.At, n.Said = e.At, e.tell()
	case Completed:
		n.At, n.Said = e.At, TxConfirmed{Hash: e.Hash, Confirmations: []chain.Block{}, Done: true, Despite: e.Despite}
	case Failed:
		n.At, n.Said = e.At, TxFailed{e.Reason, e.Detail, e.Hash}
	case Canceled:
		n.At, n.Said = e.At, TxFailed{Withdrawn, e.Detail, e.Hash}
	}
	return n, n.Sequence != 0
}

func (e Attempted) tell() Said {
	if e.Replaces.IsZero() {
		return TxSubmitted{e.Hash, e.Attempt}
	}
	cause := ByFee
	if e.Kind == NoOp {
		cause = ByCancel
	}
	return TxReplaced{e.Replaces, e.Hash, e.Attempt, cause}
}

func (e Announced) tell() Said {
	if e.Kind == AboutReceipt {
		return TxReceiptUpdated{e.Hash, e.Receipt}
	}
	return TxConfirmed{Hash: e.Hash, Confirmations: append([]chain.Block{}, e.Confirmations...), NewFork: e.NewFork}
}

// sayings names what is said, for ever.
func sayings() event.Codec[Said] {
	return event.NewCodec(
		event.As[Said, TxAccepted]("TxAccepted"),
		event.As[Said, TxSubmitted]("TxSubmitted"),
		event.As[Said, TxReplaced]("TxReplaced"),
		event.As[Said, TxReceiptUpdated]("TxReceiptUpdated"),
		event.As[Said, TxConfirmed]("TxConfirmed"),
		event.As[Said, TxFailed]("TxFailed"),
	)
}

// envelope is a notice as it is written.
type envelope struct {
	Intent   chain.IntentID  `json:"intent"`
	Sequence uint64          `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
}

// ID names the notice wherever it is sent, however often: to webhooks too.
func (n Notice) ID() string { return fmt.Sprintf("msg_%x_%d", n.Intent[:], n.Sequence) }

func (n Notice) MarshalJSON() ([]byte, error) {
	name, data, err := sayings().Encode(n.Said)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{n.Intent, n.Sequence, name, n.At, data})
}

func (n *Notice) UnmarshalJSON(b []byte) error {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	said, err := sayings().Decode(e.Type, e.Data)
	if err != nil {
		return err
	}
	*n = Notice{e.Intent, e.Sequence, e.At, said}
	return nil
}
