package watchtower

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
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
	ChainID     uint64 `json:"chainId"`
	TxHash      string `json:"txHash"`
	Type        uint8  `json:"type"`
	Sender      string `json:"sender"`
	NonceKey    string `json:"nonceKey"`
	Nonce       uint64 `json:"nonce"`
	GroupID     string `json:"groupId"`
	ValidAfter  int64  `json:"validAfter"`
	ValidBefore int64  `json:"validBefore"`
	EligibleAt  int64  `json:"eligibleAt"`
	ExpiresAt   int64  `json:"expiresAt"` // 0 means never

	Status    Status `json:"status"`
	Finalized bool   `json:"finalized"` // the verdict's block can no longer leave the chain
	Canceled  bool   `json:"canceled"`
	Violated  bool   `json:"violated"`
	Erased    bool   `json:"payloadErased"`

	NextActionAt    int64   `json:"nextActionAt"`
	WaitingForNonce *uint64 `json:"waitingForNonce"`
	Attempts        int     `json:"attempts"`
	LastBroadcastAt int64   `json:"lastBroadcastAt"`
	LastError       string  `json:"lastError"`
	Note            string  `json:"note"`

	Block   *Block   `json:"block"`
	Receipt *Receipt `json:"receipt"`

	AcceptedAt int64  `json:"acceptedAt"`
	UpdatedAt  int64  `json:"updatedAt"`
	Version    uint64 `json:"version"` // number of its events
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

// waitEach is how long one request waits. The service allows 55 seconds.
const waitEach = 50 * time.Second

// Wait returns when a transaction has reached the milestone, or when, as things are, it will
// not: check its Status. If ctx ends first, Wait returns its error with the transaction as last
// seen.
func (c *Client) Wait(ctx context.Context, hash string, m Milestone) (Transaction, error) {
	var seen Transaction
	for try := 1; ; {
		wait := waitEach
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, max(time.Until(deadline)/10*9, 0)) // so the answer arrives in time
		}
		var answer struct {
			Transaction
			Waited struct {
				Reached bool
				Because string
			}
		}
		err := c.call(ctx, request{
			method: http.MethodGet, path: pathOf(hash), wait: wait,
			query: url.Values{"wait": {string(m)}, "timeout": {fmt.Sprintf("%dms", wait.Milliseconds())}},
		}, &answer)
		if err != nil {
			return seen, err
		}
		switch seen = answer.Transaction; {
		case answer.Waited.Reached, answer.Waited.Because == "ended":
			return seen, nil
		case answer.Waited.Because == "timeout" && wait == waitEach:
			try = 1
			continue
		}
		if err := pause(ctx, backoff(try)); err != nil {
			return seen, fmt.Errorf("watchtower: %s is %s: %w", hash, seen.Status, err)
		}
		try++
	}
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
	return func(yield func(Transaction, error) bool) {
		query := url.Values{"limit": {"500"}}
		set := func(name, value string) {
			if value != "" && value != "0" && value != "false" {
				query.Set(name, value)
			}
		}
		set("chainId", strconv.FormatUint(f.ChainID, 10))
		set("sender", f.Sender)
		set("groupId", f.GroupID)
		set("ungrouped", strconv.FormatBool(f.Ungrouped))
		for _, s := range f.Statuses {
			query.Add("status", string(s))
		}
		for {
			var page struct {
				Transactions []Transaction
				NextCursor   string
				HasMore      bool
			}
			if err := c.call(ctx, request{method: http.MethodGet, path: "/v1/transactions", query: query}, &page); err != nil {
				yield(Transaction{}, err)
				return
			}
			for _, t := range page.Transactions {
				if !yield(t, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			query.Set("cursor", page.NextCursor)
		}
	}
}
