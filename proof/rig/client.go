package rig

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Result is the service's answer to one raw transaction.
type Result struct {
	OK           bool       `json:"ok"`
	TxHash       chain.Hash `json:"txHash"`
	Status       string     `json:"status"`
	AlreadyKnown bool       `json:"alreadyKnown"`
	Problem      *struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	} `json:"problem"`
}

// Transaction is the part of a GET response used by tests and judges.
type Transaction struct {
	ChainID   chain.ID   `json:"chainId"`
	TxHash    chain.Hash `json:"txHash"`
	Status    string     `json:"status"`
	Finalized bool       `json:"finalized"`
	Canceled  bool       `json:"canceled"`
	Erased    bool       `json:"payloadErased"`
	Attempts  int        `json:"attempts"`
	Note      string     `json:"note"`
	LastError string     `json:"lastError"`
	// WaitingForNonce is set while the chain wants a lower nonce.
	WaitingForNonce *uint64 `json:"waitingForNonce"`
	Receipt         *struct {
		BlockNumber uint64     `json:"blockNumber"`
		BlockHash   chain.Hash `json:"blockHash"`
		Status      uint64     `json:"status"`
	} `json:"receipt"`
}

// Event is one recorded event in the audit trail.
type Event struct {
	Name    string          `json:"name"`
	Version uint64          `json:"version"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"data"`
}

// Submit posts raw transactions in one request.
func Submit(ctx context.Context, url string, id chain.ID, raws ...[]byte) (results []Result, err error) {
	began := time.Now()
	var told *reply
	defer func() { noteSubmit(ctx, began, id, raws, told, results) }()
	hexes := make([]string, len(raws))
	for i, raw := range raws {
		hexes[i] = "0x" + hex.EncodeToString(raw)
	}
	body, err := json.Marshal(map[string]any{"chainId": uint64(id), "transactions": hexes})
	if err != nil {
		return nil, err
	}
	if told, err = ask(ctx, http.MethodPost, url+"/v1/transactions", nil, body); err != nil {
		return nil, err
	}
	var parsed struct{ Results []Result }
	if err := told.parsed(&parsed); err != nil {
		return nil, fmt.Errorf("POST: %w", err)
	}
	return parsed.Results, nil
}

// Get requests one transaction.
func Get(ctx context.Context, url string, hash chain.Hash) (t Transaction, err error) {
	began := time.Now()
	told, err := getJSON(ctx, url+"/v1/transactions/"+hash.String(), &t)
	noteGet(ctx, began, t.ChainID, hash, told, t)
	return t, err
}

// Events requests a transaction's audit trail.
func Events(ctx context.Context, url string, hash chain.Hash) ([]Event, error) {
	var parsed struct{ Events []Event }
	_, err := getJSON(ctx, url+"/v1/transactions/"+hash.String()+"/events", &parsed)
	return parsed.Events, err
}

// getJSON also returns the reply, if one arrived.
func getJSON(ctx context.Context, url string, into any) (*reply, error) {
	told, err := ask(ctx, http.MethodGet, url, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := told.parsed(into); err != nil {
		return told, fmt.Errorf("GET %s: %w", url, err)
	}
	return told, nil
}

// Await polls a transaction until it satisfies want.
func Await(ctx context.Context, url string, hash chain.Hash, want func(Transaction) bool) (t Transaction, err error) {
	for {
		// Errors are expected while servers are being killed: only the deadline counts.
		var now Transaction
		if now, err = Get(ctx, url, hash); err == nil {
			if t = now; want(t) {
				return t, nil
			}
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("%s is %s (attempts %d, %s %s): %w", hash, t.Status, t.Attempts, t.Note, t.LastError, last(ctx.Err(), err))
		case <-time.After(pollEvery):
		}
	}
}

func last(outer, inner error) error {
	if inner == nil {
		return outer
	}
	return fmt.Errorf("%w; last answer: %w", outer, inner)
}

// Executed reports whether a block holds the transaction.
func Executed(t Transaction) bool { return t.Status == "executed" }

// Sealed reports whether the transaction's block is final.
func Sealed(t Transaction) bool { return t.Status == "executed" && t.Finalized }
