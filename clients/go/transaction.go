package watchtower

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
)

// Status is the status of a transaction.
type Status string

const (
	Queued         Status = "queued"
	Broadcasting   Status = "broadcasting"
	RetryScheduled Status = "retry_scheduled"
	StatusExecuted Status = "executed"
	StaleByNonce   Status = "stale_by_nonce"
	Expired        Status = "expired"
	Invalid        Status = "invalid"
	Canceled       Status = "canceled_locally"
)

// Transaction is a transaction with its schedule, attempts and receipt.
type Transaction struct {
	ChainID      uint64        `json:"chainId"`
	TxHash       string        `json:"txHash"`
	Type         uint8         `json:"type"`
	Sender       string        `json:"sender"`
	Signature    string        `json:"signature"` // of the sender: secp256k1, p256, webauthn or keychain
	AccessKey    string        `json:"accessKey"`
	FeePayer     string        `json:"feePayer"`
	NonceKey     string        `json:"nonceKey"`
	Nonce        uint64        `json:"nonce"`
	GroupID      string        `json:"groupId"`
	GroupPending *GroupPending `json:"groupPending"` // nil unless the sender is only claimed
	NonceKeyInfo *NonceKeyInfo `json:"nonceKeyInfo"` // nil unless the nonce key has the explicit grouping format
	ValidAfter   int64         `json:"validAfter"`
	ValidBefore  int64         `json:"validBefore"`
	EligibleAt   int64         `json:"eligibleAt"`
	ExpiresAt    int64         `json:"expiresAt"` // 0 means never

	Status    Status `json:"status"`
	Finalized bool   `json:"finalized"` // the verdict's block can no longer leave the chain
	Canceled  bool   `json:"canceled"`
	Violated  bool   `json:"violated"`
	Erased    bool   `json:"payloadErased"`

	NextActionAt    int64     `json:"nextActionAt"`
	Parked          bool      `json:"parked"` // too many open transactions with lower nonces come first
	WaitingForNonce *uint64   `json:"waitingForNonce"`
	WaitingSince    int64     `json:"waitingSince"`
	AccountHeldAt   int64     `json:"accountHeldAt"` // since then the account cannot pay; 0: it is not on hold
	Attempts        int       `json:"attempts"`
	AttemptsSummary []Outcome `json:"attemptsSummary"`
	LastAttempt     *Attempt  `json:"lastAttempt"`
	LastBroadcastAt int64     `json:"lastBroadcastAt"`
	LastError       string    `json:"lastError"`
	Note            string    `json:"note"`

	Block   *Block   `json:"block"`
	Receipt *Receipt `json:"receipt"`

	// Contents of the signed bytes; only for the owners until a node may have the bytes.
	Gas   uint64 `json:"gas"`
	Fees  *Fees  `json:"fees"`
	Calls []Call `json:"calls"`

	AcceptedAt int64  `json:"acceptedAt"`
	UpdatedAt  int64  `json:"updatedAt"`
	Version    uint64 `json:"version"` // number of its events

	Waited *Waited `json:"waited"` // nil without a wait
}

// GroupPending is why a transaction is in no group yet: the chain has not confirmed the access
// key that signed it.
type GroupPending struct {
	Reason string `json:"reason"`
	Since  int64  `json:"since"`
}

// Outcome is an outcome of attempts, with the last attempt at which it was recorded.
type Outcome struct {
	Outcome string `json:"outcome"`
	Attempt int    `json:"attempt"`
}

// Attempt is one recorded broadcast, with the nodes' answers.
type Attempt struct {
	Attempt int      `json:"attempt"`
	At      int64    `json:"at"`
	Answers []Answer `json:"answers"`
}

// Answer is one node's answer to a broadcast.
type Answer struct {
	Endpoint string `json:"endpoint"`
	Class    string `json:"class"` // taken, known, retry, permanent or unknown
	Cause    string `json:"cause"`
	Code     int    `json:"code"`
	Message  string `json:"message"` // cut at 512 bytes
	Millis   int64  `json:"ms"`
}

// Fees are prices of one unit of gas, in decimal.
type Fees struct {
	GasPrice             string `json:"gasPrice"`
	MaxFeePerGas         string `json:"maxFeePerGas"`
	MaxPriorityFeePerGas string `json:"maxPriorityFeePerGas"`
	FeeToken             string `json:"feeToken"`
}

// Call is one call of a transaction.
type Call struct {
	To    string `json:"to"` // empty: a contract is created
	Value string `json:"value"`
	Input string `json:"input"`
}

// Block is the block that a verdict is based on.
type Block struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
	Time   int64  `json:"time"`
}

// Receipt is the receipt of an executed transaction.
type Receipt struct {
	BlockNumber       uint64 `json:"blockNumber"`
	BlockHash         string `json:"blockHash"`
	TransactionIndex  uint64 `json:"transactionIndex"`
	Status            uint64 `json:"status"` // 0 means reverted
	GasUsed           uint64 `json:"gasUsed"`
	EffectiveGasPrice string `json:"effectiveGasPrice"` // decimal
	FeePayer          string `json:"feePayer"`
	FeeToken          string `json:"feeToken"`
}

// Get returns one transaction.
func (c *Client) Get(ctx context.Context, hash string) (Transaction, error) {
	var t Transaction
	err := c.call(ctx, request{method: http.MethodGet, path: pathOf(hash)}, &t)
	return t, err
}

func pathOf(hash string) string { return "/v1/transactions/" + url.PathEscape(hash) }

// Milestone is a stage of a transaction for which Wait can wait.
type Milestone string

// Submitted, Mined and Completed are milestones of the relay's intents too.
const (
	Submitted Milestone = "submitted" // a node has taken it
	Mined     Milestone = "mined"     // it is in a block
	Completed Milestone = "completed" // it is in a block that can no longer leave the chain

	Broadcast Milestone = "broadcast" // a node has taken it, or its answer was lost
	Executed  Milestone = "executed"  // as Mined
	Final     Milestone = "final"     // the block of its verdict, of any kind, can no longer leave the chain
)

// Waited is the result of a wait.
type Waited struct {
	For     Milestone `json:"for"`
	Reached bool      `json:"reached"`
	// Because says why the milestone is not reached. ended: it can no longer be reached.
	// timeout: not yet. stopping, busy, unavailable: the service could not continue to wait.
	Because string `json:"because"`
}

// Wait returns when a transaction has reached the milestone, or when, as things are, it will
// not: check its Status. It retries temporary failures, such as a restart of the service, as every
// call does. If ctx ends first, Wait returns its error with the transaction as last seen.
func (c *Client) Wait(ctx context.Context, hash string, m Milestone) (Transaction, error) {
	seen, err := await(ctx, c.caller(), pathOf(hash), cmp.Or(m, Executed), func(t Transaction) *Waited { return t.Waited })
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("watchtower: %s is %s: %w", hash, cmp.Or(seen.Status, "not seen yet"), err)
	}
	return seen, err
}

// Filters restrict a list; the zero value lists everything.
type Filters struct {
	ChainID   uint64
	Sender    string
	GroupID   string
	Ungrouped bool     // only transactions without a group
	Statuses  []Status // any of these
}

// List yields transactions, newest acceptance first, page by page. An error is the last value
// that it yields.
func (c *Client) List(ctx context.Context, f Filters) iter.Seq2[Transaction, error] {
	query := with(onChain(f.ChainID), "limit", "500")
	query = with(with(query, "sender", f.Sender), "groupId", f.GroupID)
	if f.Ungrouped {
		query.Set("ungrouped", "true")
	}
	for _, s := range f.Statuses {
		query.Add("status", string(s))
	}
	return pages(query, func(query url.Values) ([]Transaction, url.Values, error) {
		var page struct {
			Transactions []Transaction
			cursor
		}
		err := c.call(ctx, get("/v1/transactions", query), &page)
		return page.Transactions, page.next(query), err
	})
}

// cursor is the part of a page that leads to the next.
type cursor struct {
	NextCursor string
	HasMore    bool
}

// next is the query of the next page; nil if there is none.
func (c cursor) next(query url.Values) url.Values {
	if !c.HasMore || c.NextCursor == "" {
		return nil
	}
	return with(query, "cursor", c.NextCursor)
}
