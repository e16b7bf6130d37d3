package intent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Notice is one public event about an intent, delivered by webhook, stream or query. Apply each
// notice once, in Sequence order, to reproduce the intent's public state.
type Notice struct {
	Intent   chain.IntentID
	Sequence uint64 // from 1, without gaps
	At       time.Time
	Said     Said
}

// Said is a notice's content.
//
//sumtype:decl
type Said interface{ said() }

// TxAccepted: the intent has a nonce. A later TxAccepted replaces this one.
type TxAccepted struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    uint64         `json:"nonce"`
}

// TxSubmitted: the intent's first transaction at this nonce was signed and is being delivered.
type TxSubmitted struct {
	Hash    chain.Hash `json:"hash"`
	Attempt int        `json:"attempt"` // counts from 1
}

// TxReplaced: another transaction has the nonce or competes for it.
type TxReplaced struct {
	Was     chain.Hash `json:"was"`
	Now     chain.Hash `json:"now,omitzero"`
	Attempt int        `json:"attempt,omitempty"` // number of the attempt Now; 0 if Now is no attempt
	Cause   Cause      `json:"cause"`
}

// Cause is why a transaction was replaced.
type Cause string

const (
	ByFee    Cause = "fee"    // the same at a higher fee; either may land
	ByCancel Cause = "cancel" // a no-op; either may land
	ByRival  Cause = "rival"  // another transaction is final at the nonce: the intent gets another nonce
	ByTime   Cause = "time"   // none: its validity ended, so that it cannot land any more
)

// TxReceiptUpdated: a block contains the transaction; without a receipt, no block does.
type TxReceiptUpdated struct {
	Hash    chain.Hash     `json:"hash"`
	Receipt *chain.Receipt `json:"receipt"`
}

// TxConfirmed: confirming blocks, from the receipt's block on. Without NewFork they continue the
// list; with NewFork they replace it. With Done there are none.
type TxConfirmed struct {
	Hash          chain.Hash    `json:"hash"`
	Confirmations []chain.Block `json:"confirmations"`
	NewFork       bool          `json:"newFork"`
	Done          bool          `json:"done"`
	// Despite is why the intent should have been stopped: "canceled", "deadline", ….
	Despite Reason `json:"despite,omitempty"`
}

// TxFailed: the intent failed or was canceled.
type TxFailed struct {
	Reason Reason     `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	Hash   chain.Hash `json:"hash,omitzero"` // the transaction that ended it, if one did
}

func (TxAccepted) said()       {}
func (TxSubmitted) said()      {}
func (TxReplaced) said()       {}
func (TxReceiptUpdated) said() {}
func (TxConfirmed) said()      {}
func (TxFailed) said()         {}

// NoticeNames are the beginnings of the stored names of all events for which [Tell] may return a
// notice, in any version. Large events, such as the request itself, are not among them.
func NoticeNames() []string {
	return []string{
		"intent.announced.", "intent.assigned.", "intent.attempted.", "intent.canceled.", "intent.completed.",
		"intent.failed.", "intent.requeued.",
	}
}

// MayHide reports whether [Tell] may return no notice for an event whose name passes [NoticeNames].
func MayHide(name string) bool { return strings.HasPrefix(name, "intent.requeued.") }

// Tell returns the notice for an event; false if the event is not reported.
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

// sayings maps notice contents to their public names, which never change.
func sayings() eventlog.Codec[Said] {
	return eventlog.NewCodec(
		eventlog.As[Said, TxAccepted]("TxAccepted"),
		eventlog.As[Said, TxSubmitted]("TxSubmitted"),
		eventlog.As[Said, TxReplaced]("TxReplaced"),
		eventlog.As[Said, TxReceiptUpdated]("TxReceiptUpdated"),
		eventlog.As[Said, TxConfirmed]("TxConfirmed"),
		eventlog.As[Said, TxFailed]("TxFailed"),
	)
}

// envelope is a notice's JSON form.
type envelope struct {
	Intent   chain.IntentID  `json:"intent"`
	Sequence uint64          `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
}

// ID returns the notice's id, which is the same in every delivery, by webhook too.
func (n Notice) ID() string { return fmt.Sprintf("msg_%x_%d", n.Intent[:], n.Sequence) }

// Type returns the notice's public type, such as TxConfirmed.
func (n Notice) Type() string {
	name, _, err := sayings().Encode(n.Said)
	if err != nil {
		panic(fmt.Sprintf("intent: a notice without a type: %v", err)) // every Said has one
	}
	return name
}

func (n Notice) envelope() (envelope, error) {
	name, data, err := sayings().Encode(n.Said)
	return envelope{n.Intent, n.Sequence, name, n.At, data}, err
}

func (n Notice) MarshalJSON() ([]byte, error) {
	e, err := n.envelope()
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

func (n *Notice) UnmarshalJSON(b []byte) error {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	return n.open(e)
}

func (n *Notice) open(e envelope) error {
	said, err := sayings().Decode(e.Type, e.Data)
	if err != nil {
		return err
	}
	*n = Notice{e.Intent, e.Sequence, e.At, said}
	return nil
}
