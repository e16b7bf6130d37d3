package watchtower

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// CanceledGroup is what became of a group that was canceled.
type CanceledGroup struct {
	ChainID  uint64 `json:"chainId"`
	Sender   string `json:"sender"`
	GroupID  string `json:"groupId"`
	Canceled int    `json:"canceled"` // how many members are
	Members  []struct {
		TxHash   string `json:"txHash"`
		Nonce    uint64 `json:"nonce"`
		Status   Status `json:"status"`
		Canceled bool   `json:"canceled"`
	} `json:"members"`
}

// Cancel is an owner's wish that a group's transactions be sent no more.
type Cancel struct {
	ChainID    uint64
	Deployment string // the service's, as [Health] tells it
	Sender     string
	GroupID    string
	Expires    time.Time // from then on the signature does not count: at most 24 hours ahead
}

// TypedData is what the owner signs, as eth_signTypedData_v4 takes it (EIP-712).
func (c Cancel) TypedData() ([]byte, error) {
	type member struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	return json.Marshal(map[string]any{
		"domain": map[string]any{"name": "Watchtower", "version": "1", "chainId": c.ChainID},
		"types": map[string][]member{
			"EIP712Domain": {{"name", "string"}, {"version", "string"}, {"chainId", "uint256"}},
			"CancelGroup":  {{"deployment", "string"}, {"sender", "address"}, {"groupId", "bytes16"}, {"expires", "uint64"}},
		},
		"primaryType": "CancelGroup",
		"message": map[string]any{
			"deployment": c.Deployment, "sender": c.Sender, "groupId": c.GroupID, "expires": c.Expires.Unix(),
		},
	})
}

// CancelGroup has the service send a group's transactions no more and forget their
// bytes. It does not touch the chain: what a node has, a block may still hold. sign
// returns the sender's signature over the wish's typed data: 65 bytes of secp256k1, or
// P-256 or WebAuthn with their type before them. Nobody can use the signature for
// anything else, nor again.
func (c *Client) CancelGroup(ctx context.Context, wish Cancel, sign func(typedData []byte) ([]byte, error)) (CanceledGroup, error) {
	var canceled CanceledGroup
	data, err := wish.TypedData()
	if err != nil {
		return canceled, err
	}
	signature, err := sign(data)
	if err != nil {
		return canceled, fmt.Errorf("watchtower: sign the cancel: %w", err)
	}
	body, err := json.Marshal(map[string]any{"expires": wish.Expires.Unix(), "signature": "0x" + hex.EncodeToString(signature)})
	if err != nil {
		return canceled, err
	}
	err = c.call(ctx, request{
		method: http.MethodPost, path: groupPath(wish.Sender, wish.GroupID) + "/cancel", query: onChain(wish.ChainID), body: body,
	}, &canceled)
	return canceled, err
}

// CancelGroupID is [Client.CancelGroup] by a signature over the Keccak-256 digest of
// the group's id, which sign is given as bytes. Such a signature names no chain, no
// service and no time: whoever has seen it can show it again, for ever. Canceling again
// changes nothing.
func (c *Client) CancelGroupID(ctx context.Context, chainID uint64, sender, groupID string, sign func(groupID []byte) ([]byte, error)) (CanceledGroup, error) {
	var canceled CanceledGroup
	id, err := hex.DecodeString(strings.TrimPrefix(groupID, "0x"))
	if err != nil {
		return canceled, fmt.Errorf("watchtower: group id %q: %w", groupID, err)
	}
	signature, err := sign(id)
	if err != nil {
		return canceled, fmt.Errorf("watchtower: sign the cancel: %w", err)
	}
	err = c.call(ctx, request{
		method: http.MethodPost, path: groupPath(sender, groupID) + "/cancel", query: onChain(chainID),
		header: http.Header{"Authorization": {"Signature 0x" + hex.EncodeToString(signature)}},
	}, &canceled)
	return canceled, err
}
