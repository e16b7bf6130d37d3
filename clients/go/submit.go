package watchtower

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	Problem      *Problem `json:"problem"`
}

// Submit submits at most 1000 signed transactions for one chain. Results are in the order of
// raws. A result that is OK is durable: the service will deliver the transaction, even if the
// connection, this program or the service fails.
//
// Transactions with a temporary problem are submitted again, like the whole request. A
// transaction that still fails in the end has its problem in its result. With an error, which
// concerns the whole request, there are no results.
func (c *Client) Submit(ctx context.Context, chainID uint64, raws ...[]byte) ([]Result, error) {
	results := make([]Result, len(raws))
	left := make([]int, len(raws)) // indexes of raws without a lasting answer
	for i := range left {
		left[i] = i
	}
	for try := 1; len(left) > 0; try++ {
		var again []int
		answers, err := c.submit(ctx, chainID, pick(raws, left), nil)
		switch {
		case err != nil && try == 1:
			return nil, err
		case err != nil:
			return results, nil //nolint:nilerr // the other items have their problems; accepted items stay accepted
		}
		for i, place := range left {
			if results[place] = answers[i]; !answers[i].OK && answers[i].Problem != nil && answers[i].Problem.Temporary() {
				again = append(again, place)
			}
		}
		if left = again; len(left) == 0 || try >= c.tries() || pause(ctx, backoff(try)) != nil {
			break
		}
	}
	return results, nil //nolint:nilerr // a pause that was cut short leaves each result to say what it is
}

// Validate answers like Submit and records nothing. It does not check nonce, balance, fees and
// rights, which only the chain knows.
func (c *Client) Validate(ctx context.Context, chainID uint64, raws ...[]byte) ([]Result, error) {
	if len(raws) == 0 {
		return nil, nil
	}
	return c.submit(ctx, chainID, raws, url.Values{"validate": {"only"}})
}

func (c *Client) submit(ctx context.Context, chainID uint64, raws [][]byte, query url.Values) ([]Result, error) {
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = "0x" + hex.EncodeToString(raw)
	}
	body, err := json.Marshal(map[string]any{"chainId": chainID, "transactions": texts})
	if err != nil {
		return nil, err
	}
	var answer struct{ Results []Result }
	r := request{method: http.MethodPost, path: "/v1/transactions", query: query, body: body}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(raws) {
		return nil, fmt.Errorf("watchtower: %d results for %d transactions", len(answer.Results), len(raws))
	}
	return answer.Results, nil
}

func pick(raws [][]byte, places []int) [][]byte {
	picked := make([][]byte, len(places))
	for i, place := range places {
		picked[i] = raws[place]
	}
	return picked
}
