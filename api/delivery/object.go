package delivery

import (
	"cmp"
	"encoding/hex"
	"slices"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// transaction is one transaction in an answer. Times are Unix seconds. Numbers of up to 64 bits
// are JSON numbers; larger ones are decimal strings or hex.
type transaction struct {
	ChainID      chain.ID            `json:"chainId"`
	TxHash       chain.Hash          `json:"txHash"`
	Type         uint8               `json:"type"`
	Sender       chain.Address       `json:"sender"`
	Signature    chain.SignatureKind `json:"signature"`
	AccessKey    *chain.Address      `json:"accessKey,omitempty"`
	FeePayer     *chain.Address      `json:"feePayer,omitempty"`
	NonceKey     chain.NonceKey      `json:"nonceKey"`
	Nonce        uint64              `json:"nonce"`
	GroupID      *chain.GroupID      `json:"groupId,omitempty"`
	GroupPending *groupPending       `json:"groupPending,omitempty"`
	NonceKeyInfo *nonceKeyInfo       `json:"nonceKeyInfo,omitempty"`
	ValidAfter   uint64              `json:"validAfter,omitempty"`
	ValidBefore  uint64              `json:"validBefore,omitempty"`
	EligibleAt   uint64              `json:"eligibleAt"`
	ExpiresAt    uint64              `json:"expiresAt,omitempty"`

	Status    tx.Status `json:"status"`
	Finalized bool      `json:"finalized"`
	Canceled  bool      `json:"canceled,omitempty"`
	Violated  bool      `json:"violated,omitempty"`
	Erased    bool      `json:"payloadErased,omitempty"`

	NextActionAt    int64     `json:"nextActionAt,omitempty"`
	Parked          bool      `json:"parked,omitempty"`
	WaitingForNonce *uint64   `json:"waitingForNonce,omitempty"`
	WaitingSince    int64     `json:"waitingSince,omitempty"`
	AccountHeldAt   int64     `json:"accountHeldAt,omitempty"`
	Attempts        int       `json:"attempts"`
	AttemptsSummary []outcome `json:"attemptsSummary"`
	LastAttempt     *attempt  `json:"lastAttempt,omitempty"`
	LastBroadcastAt int64     `json:"lastBroadcastAt,omitempty"`
	LastError       string    `json:"lastError,omitempty"`
	Note            string    `json:"note,omitempty"`

	Block   *block   `json:"block,omitempty"`
	Receipt *receipt `json:"receipt,omitempty"`

	AcceptedAt int64  `json:"acceptedAt"`
	UpdatedAt  int64  `json:"updatedAt"`
	Version    uint64 `json:"version"`

	// Decoded from the signed bytes: absent in lists, and once the bytes are erased.
	Gas   *uint64 `json:"gas,omitempty"`
	Fees  *fees   `json:"fees,omitempty"`
	Calls []call  `json:"calls,omitempty"`

	Waited *rest.Waited `json:"waited,omitempty"`
}

// groupPending says why a transaction has not joined its group yet, and since when: the chain
// has not confirmed the access key that signed it.
type groupPending struct {
	Reason string `json:"reason"`
	Since  int64  `json:"since"`
}

// nonceKeyInfo holds the parts of a nonce key in the explicit grouping format.
type nonceKeyInfo struct {
	Kind  string `json:"kind"`
	Scope string `json:"scope"`
	Group string `json:"group"`
	Memo  string `json:"memo"`
}

// outcome is one kind of answer, and the last attempt for which it was recorded.
type outcome struct {
	Outcome string `json:"outcome"`
	Attempt int    `json:"attempt"`
}

// attempt is the last broadcast attempt that was recorded.
type attempt struct {
	Attempt int              `json:"attempt"`
	At      int64            `json:"at"`
	Answers []endpointAnswer `json:"answers"`
}

// endpointAnswer is one node's answer, with the node's own message.
type endpointAnswer struct {
	Endpoint string   `json:"endpoint"`
	Class    tx.Class `json:"class"`
	Cause    tx.Cause `json:"cause,omitempty"`
	Code     int      `json:"code,omitempty"`
	Message  string   `json:"message,omitempty"`
	MS       int64    `json:"ms"`
}

// block is the block that a verdict is based on.
type block struct {
	Number uint64     `json:"number"`
	Hash   chain.Hash `json:"hash"`
	Time   uint64     `json:"time"`
}

type receipt struct {
	BlockNumber       uint64         `json:"blockNumber"`
	BlockHash         chain.Hash     `json:"blockHash"`
	TransactionIndex  uint64         `json:"transactionIndex"`
	Status            uint64         `json:"status"`
	GasUsed           uint64         `json:"gasUsed"`
	EffectiveGasPrice string         `json:"effectiveGasPrice,omitempty"`
	FeePayer          *chain.Address `json:"feePayer,omitempty"`
	FeeToken          *chain.Address `json:"feeToken,omitempty"`
}

// fees are prices per unit of gas, in decimal.
type fees struct {
	GasPrice             string         `json:"gasPrice,omitempty"`
	MaxFeePerGas         string         `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas string         `json:"maxPriorityFeePerGas,omitempty"`
	FeeToken             *chain.Address `json:"feeToken,omitempty"`
}

type call struct {
	To    *chain.Address `json:"to,omitempty"` // nil for a contract creation
	Value string         `json:"value"`        // decimal
	Input string         `json:"input"`        // hex
}

// shownOf returns a row as shown to a viewer.
func shownOf(v viewer, row transactions.Row) *transaction {
	s, t := row.State, row.State.Accepted
	shown := &transaction{
		ChainID: t.Chain, TxHash: t.Hash, Type: t.Type, Sender: t.Sender, Signature: t.Signature,
		AccessKey: t.AccessKey, FeePayer: t.FeePayer, NonceKey: t.NonceKey, Nonce: t.Nonce, GroupID: t.Group,
		ValidAfter: t.Window.After, ValidBefore: t.Window.Before, EligibleAt: t.EligibleAt, ExpiresAt: t.Window.Before,
		Status: s.Status, Finalized: s.Sealed, Canceled: s.Canceled, Violated: s.Violated, Erased: s.Erased,
		Attempts: s.Attempt, AttemptsSummary: []outcome{},
		LastBroadcastAt: unix(row.LastBroadcastAt), LastError: row.LastError,
		AcceptedAt: unix(row.AcceptedAt), UpdatedAt: unix(row.UpdatedAt), Version: uint64(v.version(row)),
	}
	if s.GroupPending() {
		shown.GroupPending = &groupPending{cmp.Or(s.Doubt, notAskedYet), unix(row.AcceptedAt)}
	}
	shown.NonceKeyInfo = infoOf(t.NonceKey)
	for what, n := range s.Recorded {
		shown.AttemptsSummary = append(shown.AttemptsSummary, outcome{what, n})
	}
	slices.SortFunc(shown.AttemptsSummary, func(x, y outcome) int {
		return cmp.Or(cmp.Compare(x.Attempt, y.Attempt), cmp.Compare(x.Outcome, y.Outcome))
	})
	if len(row.LastAnswers) > 0 {
		shown.LastAttempt = attemptOf(row)
	}
	shown.Block, shown.Receipt = verdictOf(s)
	return shown
}

// verdictOf returns the block that a verdict is based on, and its receipt.
func verdictOf(s tx.State) (b *block, r *receipt) {
	if !s.Block.IsZero() {
		b = &block{s.Block.Number, s.Block.Hash, s.Block.Time}
	}
	if s.Receipt != nil {
		r = receiptOf(*s.Receipt)
	}
	return b, r
}

// notAskedYet is the reason for a pending group before the chain has answered.
const notAskedYet = "the chain has not been queried yet whether the access key may sign for the sender"

// infoOf returns the parts of a nonce key in the explicit grouping format, or nil for other
// keys.
func infoOf(key chain.NonceKey) *nonceKeyInfo {
	e, ok := key.Explicit()
	if !ok {
		return nil
	}
	return &nonceKeyInfo{
		Kind: "0x" + hex.EncodeToString([]byte{e.Kind}), Scope: e.Scope.Number(), Group: e.Group.Number(), Memo: e.Memo.Text(),
	}
}

func attemptOf(row transactions.Row) *attempt {
	last := &attempt{Attempt: row.State.Attempt, At: unix(row.LastBroadcastAt)}
	for _, x := range row.LastAnswers {
		last.Answers = append(last.Answers, endpointAnswer{
			Endpoint: x.Endpoint, Class: x.Class, Cause: x.Cause, Code: x.Code, Message: x.Message, MS: x.Took.Milliseconds(),
		})
	}
	return last
}

func receiptOf(r chain.Receipt) *receipt {
	return &receipt{
		BlockNumber: r.Block.Number, BlockHash: r.Block.Hash, TransactionIndex: r.Index, Status: r.Status,
		GasUsed: r.GasUsed, EffectiveGasPrice: r.EffectiveGasPrice, FeePayer: r.FeePayer, FeeToken: r.FeeToken,
	}
}

// addWork adds the due queue's counters, which change between two recorded events.
func (t *transaction) addWork(w tx.Work) {
	t.Attempts = max(t.Attempts, w.Attempts)
	t.LastBroadcastAt = max(t.LastBroadcastAt, unix(w.SentAt))
	t.Note = w.Note
	if w.Phase != tx.Open {
		return
	}
	t.NextActionAt, t.Parked, t.AccountHeldAt = unix(w.NextAt), w.Parked, unix(w.HeldSince)
	if w.WaitNonce > 0 {
		wanted := w.WaitNonce - 1
		t.WaitingForNonce, t.WaitingSince = &wanted, unix(w.WaitSince)
	}
}

// addContent adds the values that only the signed bytes contain.
func (t *transaction) addContent(s chain.Signed) {
	t.Gas = &s.Gas
	t.Fees = &fees{
		GasPrice: decimal(s.GasPrice), MaxFeePerGas: decimal(s.MaxFee), MaxPriorityFeePerGas: decimal(s.MaxPriorityFee),
		FeeToken: s.FeeToken,
	}
	for _, c := range s.Calls {
		value := cmp.Or(decimal(c.Value), "0")
		t.Calls = append(t.Calls, call{c.To, value, "0x" + hex.EncodeToString(c.Input)})
	}
}

func decimal(n *uint256.Int) string {
	if n == nil {
		return ""
	}
	return n.Dec()
}

// unix returns t in Unix seconds; 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
