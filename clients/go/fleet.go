package watchtower

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
)

// Signers are the signers and pools that a key may use.
type Signers struct {
	Signers   []Signer `json:"signers"`
	Pools     []Pool   `json:"pools"`
	CountedAt int64    `json:"countedAt,omitempty"` // 0: the intents were not counted yet
}

// Pool is a pool of signers. Waiting are the client's intents of the pool without a nonce.
type Pool struct {
	Name    string   `json:"name"`
	Signers []string `json:"signers"`
	Waiting int      `json:"waiting"`
}

// Signer is an account that signs for intents.
type Signer struct {
	Address string          `json:"address"`
	Pools   []string        `json:"pools"`
	Chains  []SignerOnChain `json:"chains"`
}

// SignerOnChain is a signer on one chain. The members from Status on are for keys with the scope audit
// or admin.
type SignerOnChain struct {
	ChainID   ChainID        `json:"chainId"`
	Serves    bool           `json:"serves"` // it gets new intents
	Waiting   int            `json:"waiting"`
	Assigned  int            `json:"assigned"`
	Status    string         `json:"status,omitempty"`
	Actor     string         `json:"actor,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Since     int64          `json:"since,omitempty"`
	Threshold string         `json:"threshold,omitempty"`
	Balance   string         `json:"balance,omitempty"`
	BalanceAt int64          `json:"balanceAt,omitempty"`
	Failures  int            `json:"failures,omitempty"`
	LastError *OperatorError `json:"lastError,omitempty"`
	NextNonce *uint64        `json:"nextNonce,omitempty"`
	InFlight  *int           `json:"inFlight,omitempty"`
	SignedAt  int64          `json:"signedAt,omitempty"`
}

// OperatorError is the last error of a signer or a lane.
type OperatorError struct {
	Kind   string `json:"kind,omitempty"`
	Detail string `json:"detail,omitempty"`
	At     int64  `json:"at"`
}

// LaneID names a lane: a signer's nonces on a chain, under a nonce key.
type LaneID struct {
	ChainID  ChainID
	Signer   string
	NonceKey string // empty: 0x0
}

func (id LaneID) path() string {
	key := id.NonceKey
	if key == "" {
		key = "0x0"
	}
	return "/v1/lanes/" + url.PathEscape(string(id.ChainID)) + "/" + url.PathEscape(id.Signer) + "/" + url.PathEscape(key)
}

// Lane is the state of a lane.
type Lane struct {
	ChainID      ChainID    `json:"chainId"`
	Signer       string     `json:"signer"`
	NonceKey     string     `json:"nonceKey"`
	Holder       string     `json:"holder,omitempty"`
	Token        uint64     `json:"token"`
	OpenedAt     int64      `json:"openedAt,omitempty"`
	NextNonce    *uint64    `json:"nextNonce,omitempty"`
	InFlight     int        `json:"inFlight"`
	Open         int        `json:"open"`
	Holes        int        `json:"holes"`
	Front        *LaneFront `json:"front,omitempty"`
	Waiting      int        `json:"waiting"`
	Assigned     int        `json:"assigned"`
	SignerStatus string     `json:"signerStatus"`
	Balance      string     `json:"balance,omitempty"`
	BalanceAt    int64      `json:"balanceAt,omitempty"`
	SignedAt     int64      `json:"signedAt,omitempty"`
	SeenAt       int64      `json:"seenAt,omitempty"`
	Here         *LaneHere  `json:"here,omitempty"` // at the replica that works on it
	ChainNonce   *uint64    `json:"chainNonce,omitempty"`
	ChainBlock   uint64     `json:"chainBlock,omitempty"`
	Drift        *int64     `json:"drift,omitempty"`
	ChainError   string     `json:"chainError,omitempty"`
}

// LaneFront is the lowest nonce that is signed and in no block.
type LaneFront struct {
	Nonce    uint64 `json:"nonce"`
	IntentID string `json:"intentId,omitempty"`
	Since    int64  `json:"since"`
	Attempts int    `json:"attempts"`
	TxHash   string `json:"txHash"`
}

// LaneHere is what the replica that works on a lane knows of it.
type LaneHere struct {
	Budget    int            `json:"budget"`
	TurnAt    int64          `json:"turnAt"`
	InTrouble bool           `json:"inTrouble"`
	LastError *OperatorError `json:"lastError,omitempty"`
}

// LaneFilters restrict a list; the zero value lists all lanes.
type LaneFilters struct {
	ChainID ChainID
	Signer  string
	Holder  string
	Busy    *bool // whether a nonce is in flight
}

// Signers returns the signers and pools that the key may use, on one chain or, if it is empty, on all.
func (r *Relay) Signers(ctx context.Context, chainID ChainID) (Signers, error) {
	var found Signers
	err := r.caller().call(ctx, get("/v1/signers", with(url.Values{}, "chainId", string(chainID))), &found)
	return found, err
}

// Signer returns one signer.
func (r *Relay) Signer(ctx context.Context, address string) (Signer, error) {
	var found Signer
	err := r.caller().call(ctx, get("/v1/signers/"+url.PathEscape(address), nil), &found)
	return found, err
}

// Lanes yields lanes, newest first, page by page. It needs the scope audit. An error is the last value
// that it yields.
func (r *Relay) Lanes(ctx context.Context, f LaneFilters) iter.Seq2[Lane, error] {
	query := url.Values{"limit": {"200"}}
	for name, value := range map[string]string{"chainId": string(f.ChainID), "signer": f.Signer, "holder": f.Holder} {
		query = with(query, name, value)
	}
	if f.Busy != nil {
		query.Set("busy", strconv.FormatBool(*f.Busy))
	}
	return pages(query, func(query url.Values) ([]Lane, url.Values, error) {
		var page struct {
			Lanes []Lane
			cursor
		}
		err := r.caller().call(ctx, get("/v1/lanes", query), &page)
		return page.Lanes, page.next(query), err
	})
}

// Lane returns one lane, compared with the chain. It needs the scope audit.
func (r *Relay) Lane(ctx context.Context, id LaneID) (Lane, error) {
	var found Lane
	err := r.caller().call(ctx, get(id.path(), nil), &found)
	return found, err
}

// Diagnosis returns the diagnosis of a lane, as JSON: the one of relayer doctor. It needs the scope
// audit.
func (r *Relay) Diagnosis(ctx context.Context, id LaneID) (json.RawMessage, error) {
	var found json.RawMessage
	err := r.caller().call(ctx, get(id.path()+"/diagnosis", nil), &found)
	return found, err
}
