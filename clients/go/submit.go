package watchtower

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Result is the answer to one raw transaction: its acceptance, or a problem.
type Result struct {
	OK           bool     `json:"ok"`
	TxHash       string   `json:"txHash"`
	Sender       string   `json:"sender"`
	NonceKey     string   `json:"nonceKey"`
	Nonce        uint64   `json:"nonce"`
	GroupID      string   `json:"groupId"`
	EligibleAt   int64    `json:"eligibleAt"`
	ExpiresAt    int64    `json:"expiresAt"` // 0 means never
	Status       Status   `json:"status"`
	AlreadyKnown bool     `json:"alreadyKnown"`
	ValidateOnly bool     `json:"validateOnly"`
	Finalized    bool     `json:"finalized"`
	Block        *Block   `json:"block"`
	Receipt      *Receipt `json:"receipt"`
	Waited       *Waited  `json:"waited"` // nil without a wait
	Problem      *Problem `json:"problem"`
}

// Submission is a request to submit at most 1000 signed transactions for one chain.
type Submission struct {
	ChainID      uint64
	Transactions [][]byte
	// IdempotencyKey makes the service answer a repeated request as it answered the first;
	// optional, because a transaction is identified by its hash anyway. Under a key, the
	// transactions with a temporary problem are not submitted again.
	IdempotencyKey string
	// Wait makes the service answer when every accepted transaction has reached the milestone,
	// or Timeout is over; at most 55 seconds, 0 means 20. Optional.
	Wait    Milestone
	Timeout time.Duration
}

// defaultWait is the timeout that the services take for a wait without one.
const defaultWait = 20 * time.Second

// Submit submits at most 1000 signed transactions for one chain. Results are in the order of
// raws. A result that is OK is durable: the service will deliver the transaction, even if the
// connection, this program or the service fails.
//
// Transactions with a temporary problem are submitted again, like the whole request. A
// transaction that still fails in the end has its problem in its result. With an error, which
// concerns the whole request, there are no results.
func (c *Client) Submit(ctx context.Context, chainID uint64, raws ...[]byte) ([]Result, error) {
	return c.SubmitAll(ctx, Submission{ChainID: chainID, Transactions: raws})
}

// SubmitAll is [Client.Submit] with options.
func (c *Client) SubmitAll(ctx context.Context, s Submission) ([]Result, error) {
	send := func(some [][]byte) ([]Result, error) {
		s := s
		s.Transactions = some
		return c.submit(ctx, s, nil)
	}
	if s.IdempotencyKey != "" {
		return send(s.Transactions)
	}
	return sendItems(ctx, c.tries(), s.Transactions, send, func(r Result) *Problem { return r.Problem })
}

// sendItems sends items, and sends items with a temporary problem again. Results are
// in the items' order; an item that fails to the end has its last problem.
func sendItems[I, R any](ctx context.Context, tries int, items []I, send func([]I) ([]R, error), problem func(R) *Problem) ([]R, error) {
	results := make([]R, len(items))
	left := make([]int, len(items)) // indexes of items without a lasting answer
	for i := range left {
		left[i] = i
	}
	for try := 1; len(left) > 0; try++ {
		some := make([]I, len(left))
		for i, place := range left {
			some[i] = items[place]
		}
		answers, err := send(some)
		switch {
		case err != nil && try == 1:
			return nil, err
		case err != nil:
			return results, nil //nolint:nilerr // the other items have their problems; accepted items stay accepted
		case len(answers) != len(some):
			return nil, fmt.Errorf("watchtower: %d results for %d items", len(answers), len(some))
		}
		var again []int
		for i, place := range left {
			results[place] = answers[i]
			if p := problem(answers[i]); p != nil && p.Temporary() {
				again = append(again, place)
			}
		}
		if left = again; len(left) == 0 || try >= tries || pause(ctx, backoff(try)) != nil {
			break
		}
	}
	return results, nil //nolint:nilerr // after a pause that was cut short each result has its own problem
}

// Validate answers like Submit and records nothing. It does not check nonce, balance, fees and
// rights, which only the chain knows.
func (c *Client) Validate(ctx context.Context, chainID uint64, raws ...[]byte) ([]Result, error) {
	if len(raws) == 0 {
		return nil, nil
	}
	return c.submit(ctx, Submission{ChainID: chainID, Transactions: raws}, url.Values{"validate": {"only"}})
}

func (c *Client) submit(ctx context.Context, s Submission, query url.Values) ([]Result, error) {
	texts := make([]string, len(s.Transactions))
	for i, raw := range s.Transactions {
		texts[i] = "0x" + hex.EncodeToString(raw)
	}
	if s.Wait != "" {
		query = waiting(s.Wait, s.Timeout)
	}
	r, err := post("/v1/transactions", query, map[string]any{"chainId": s.ChainID, "transactions": texts})
	if err != nil {
		return nil, err
	}
	r.header, r.wait = keyed(s.IdempotencyKey), waitOf(s.Wait, s.Timeout)
	var answer struct{ Results []Result }
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(s.Transactions) {
		return nil, fmt.Errorf("watchtower: %d results for %d transactions", len(answer.Results), len(s.Transactions))
	}
	return answer.Results, nil
}

// waiting is the query of a wait; empty for no milestone.
func waiting(m Milestone, timeout time.Duration) url.Values {
	query := url.Values{}
	if m != "" {
		query.Set("wait", string(m))
	}
	if m != "" && timeout != 0 {
		query.Set("timeout", fmt.Sprintf("%dms", timeout.Milliseconds()))
	}
	return query
}

// waitOf is how long the service may wait.
func waitOf(m Milestone, timeout time.Duration) time.Duration {
	if m == "" {
		return 0
	}
	return cmp.Or(timeout, defaultWait)
}

func keyed(idempotencyKey string) http.Header {
	if idempotencyKey == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {idempotencyKey}}
}
