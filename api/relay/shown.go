package relay

import (
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// shown is an intent in an answer. Times are Unix seconds; amounts are decimal strings.
type shown struct {
	ID      chain.IntentID `json:"id"`
	Status  intent.Status  `json:"status"`
	Client  string         `json:"client,omitempty"`
	Key     string         `json:"key"`
	ChainID chain.ID       `json:"chainId"`
	Signer  *chain.Address `json:"signer,omitempty"` // as requested
	Pool    string         `json:"pool,omitempty"`

	Calls     []call            `json:"calls"`
	Gas       *gas              `json:"gas,omitempty"`
	NotBefore uint64            `json:"notBefore,omitempty"`
	Deadline  uint64            `json:"deadline,omitempty"`
	Order     string            `json:"orderingKey,omitempty"`
	NonceKey  *nonceKey         `json:"nonceKey,omitempty"`
	Subject   string            `json:"subject,omitempty"`
	Webhooks  []webhook         `json:"webhooks,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Simulate  bool              `json:"simulate,omitempty"`

	// Sequence is the sequence of the last event.
	Sequence      uint64      `json:"sequence"`
	Place         *place      `json:"place,omitempty"`
	LeastFee      string      `json:"leastFeePerGas,omitempty"` // set by a speed-up
	Attempts      []attempt   `json:"attempts"`
	FirstTxHash   *chain.Hash `json:"firstTxHash,omitempty"` // of the first attempt at the calls
	TxHash        *chain.Hash `json:"txHash,omitempty"`      // of the transaction with the receipt
	Receipt       *receipt    `json:"receipt,omitempty"`
	Confirmations []block     `json:"confirmations,omitempty"`
	Stopping      *stopping   `json:"stopping,omitempty"`
	WaitingFor    *waitingFor `json:"waitingFor,omitempty"`
	WaitingSince  int64       `json:"waitingSince,omitempty"`
	Outcome       *outcome    `json:"outcome,omitempty"`

	// RequestID is the id of the request that created the intent, as a UUID; TraceID is its trace.
	RequestID *eventlog.ID `json:"requestId,omitempty"`
	TraceID   string       `json:"traceId,omitempty"`

	RequestedAt  int64        `json:"requestedAt"`
	UpdatedAt    int64        `json:"updatedAt,omitempty"`
	AlreadyKnown *bool        `json:"alreadyKnown,omitempty"`
	Waited       *rest.Waited `json:"waited,omitempty"`
}

type call struct {
	To    *chain.Address `json:"to,omitempty"` // nil for a contract creation
	Value intent.Amount  `json:"value"`
	Data  intent.Data    `json:"data,omitempty"` // empty in lists
}

type gas struct {
	Limit          uint64         `json:"limit,omitempty"`
	Urgency        intent.Urgency `json:"urgency,omitempty"`
	MaxFee         intent.Amount  `json:"maxFeePerGas,omitzero"`
	MaxPriorityFee intent.Amount  `json:"maxPriorityFeePerGas,omitzero"`
	FeeToken       *chain.Address `json:"feeToken,omitempty"`
	Sponsored      bool           `json:"sponsored,omitempty"`
}

type nonceKey struct {
	Mode intent.NonceMode `json:"mode"`
	Key  *chain.NonceKey  `json:"key,omitempty"`
}

// webhook is the origin of a webhook URL. The rest of the URL may be secret.
type webhook struct {
	Origin string `json:"origin"`
}

type place struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    uint64         `json:"nonce"`
}

type attempt struct {
	Attempt  int                `json:"attempt"`
	Kind     intent.AttemptKind `json:"kind"`
	TxHash   chain.Hash         `json:"txHash"`
	Replaces *chain.Hash        `json:"replaces,omitempty"`
	// Price per unit of gas, in the chain's smallest unit, in decimal.
	MaxFee         string `json:"maxFeePerGas,omitempty"`
	MaxPriorityFee string `json:"maxPriorityFeePerGas,omitempty"`
	At             int64  `json:"at"`
}

type block struct {
	Number uint64     `json:"number"`
	Hash   chain.Hash `json:"hash"`
	Time   uint64     `json:"time"`
}

type receipt struct {
	Block             block          `json:"block"`
	TransactionIndex  uint64         `json:"transactionIndex"`
	Status            uint64         `json:"status"`
	GasUsed           uint64         `json:"gasUsed"`
	EffectiveGasPrice string         `json:"effectiveGasPrice,omitempty"`
	FeePayer          *chain.Address `json:"feePayer,omitempty"`
	FeeToken          *chain.Address `json:"feeToken,omitempty"`
}

// stopping is why the intent is to end without effect.
type stopping struct {
	Reason intent.Reason `json:"reason"`
	Detail string        `json:"detail,omitempty"`
}

// outcome is the end of an intent. For a completed intent, Reason is why it should not have
// been executed.
type outcome struct {
	Reason intent.Reason `json:"reason,omitempty"`
	Detail string        `json:"detail,omitempty"`
	TxHash *chain.Hash   `json:"txHash,omitempty"`
	Block  *block        `json:"block,omitempty"`
}

// shownOf shows an intent. UpdatedAt is zero if row has only a state.
func shownOf(row intents.Row) *shown {
	s, r := row.State, row.State.Requested.Request
	out := &shown{
		ID: s.Requested.ID, Status: s.Status(), Client: r.Client, Key: r.Key, ChainID: r.Chain, Signer: r.Signer, Pool: r.Pool,
		Calls: []call{}, NotBefore: r.NotBefore, Deadline: r.Deadline, Order: r.Order, Subject: r.Subject, Metadata: r.Metadata, Simulate: r.Simulate,
		Sequence: s.Sequence, Attempts: []attempt{},
		RequestedAt: unix(s.Requested.At), UpdatedAt: unix(row.UpdatedAt),
	}
	if o := s.Requested.Origin; !o.Correlation.IsZero() {
		out.RequestID = &o.Correlation
	}
	out.TraceID = traceOf(s.Requested.Origin.Trace)
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, call(c))
	}
	if g := gas(r.Gas); g != (gas{}) {
		out.Gas = &g
	}
	if r.NonceKey.Mode != intent.NonceAny {
		out.NonceKey = &nonceKey{r.NonceKey.Mode, r.NonceKey.Key}
	}
	for _, w := range r.Webhooks {
		out.Webhooks = append(out.Webhooks, webhook{w.Origin()})
	}
	out.addCourse(s)
	return out
}

// traceOf returns the trace's id of a W3C traceparent; empty if it has none. Source: W3C Trace Context,
// "traceparent Header": version-traceid-parentid-flags.
func traceOf(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) >= 4 {
		return parts[1]
	}
	return ""
}

// addCourse adds the progress of the intent.
func (out *shown) addCourse(s intent.State) {
	if p := s.Place; p != nil {
		out.Place = &place{p.Signer, p.NonceKey, p.Nonce}
	}
	if !s.Floor.IsZero() {
		out.LeastFee = s.Floor.String()
	}
	for _, made := range s.Attempts {
		one := attempt{Attempt: made.Attempt, Kind: made.Kind, TxHash: made.Hash, Replaces: hashOf(made.Replaces), At: unix(made.At)}
		if made.Fee != (chain.Fee{}) {
			one.MaxFee, one.MaxPriorityFee = made.Fee.MaxFee.String(), made.Fee.MaxPriorityFee.String()
		}
		out.Attempts = append(out.Attempts, one)
		if out.FirstTxHash == nil && made.Kind != intent.NoOp {
			out.FirstTxHash = hashOf(made.Hash)
		}
	}
	if r := s.Receipt; r != nil {
		out.TxHash = hashOf(s.Mined)
		out.Receipt = &receipt{blockOf(r.Block), r.Index, r.Status, r.GasUsed, r.EffectiveGasPrice, r.FeePayer, r.FeeToken}
	}
	for _, b := range s.Told {
		out.Confirmations = append(out.Confirmations, blockOf(b))
	}
	if s.Stop.Reason != "" {
		out.Stopping = &stopping{s.Stop.Reason, s.Stop.Detail}
	}
	if e := s.End; e != nil {
		out.Outcome = &outcome{Reason: e.Reason, Detail: e.Detail, TxHash: hashOf(e.Hash)}
		if !e.Block.IsZero() {
			b := blockOf(e.Block)
			out.Outcome.Block = &b
		}
	}
}

func blockOf(b chain.Block) block { return block{b.Number, b.Hash, b.Time} }

// hashOf returns nil for the zero hash.
func hashOf(h chain.Hash) *chain.Hash {
	if h.IsZero() {
		return nil
	}
	return &h
}

// unix returns t in Unix seconds; 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
