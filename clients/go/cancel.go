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

// CanceledGroup is the result of canceling a group.
type CanceledGroup struct {
	ChainID  uint64           `json:"chainId"`
	Sender   string           `json:"sender"`
	GroupID  string           `json:"groupId"`
	NonceKey string           `json:"nonceKey"`
	Canceled int              `json:"canceled"` // number of canceled members
	Members  []CanceledMember `json:"members"`  // the client's own
}

// CanceledMember is a member of a canceled group.
type CanceledMember struct {
	TxHash   string `json:"txHash"`
	Nonce    uint64 `json:"nonce"`
	Status   Status `json:"status"`
	Canceled bool   `json:"canceled"` // false for a member that had ended before
	Erased   bool   `json:"payloadErased"`
}

// Cancel is an owner's request to stop delivering a group's transactions.
type Cancel struct {
	ChainID    uint64
	Deployment string // the service's name, see [Health]
	Sender     string
	GroupID    string
	Expires    time.Time // the signature is invalid from then on; at most 24 hours ahead
	// IdempotencyKey makes the service answer a repeated request as it answered the first;
	// optional, because a repeated cancel changes nothing anyway.
	IdempotencyKey string
}

// TypedData is the message that the owner signs, in the form of eth_signTypedData_v4 (EIP-712).
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

// CancelGroup makes the service stop sending a group's transactions and erase their bytes. It
// does not touch the chain: a block may still include a transaction that a node already has.
// sign returns the sender's signature over the typed data: 65 bytes for secp256k1; for P-256 or
// WebAuthn the type comes first. The signature is of no other use, and cannot be used again.
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
	r, err := post(groupPath(wish.Sender, wish.GroupID)+"/cancel", onChain(wish.ChainID),
		map[string]any{"expires": wish.Expires.Unix(), "signature": "0x" + hex.EncodeToString(signature)})
	if err != nil {
		return canceled, err
	}
	r.header = keyed(wish.IdempotencyKey)
	err = c.call(ctx, r, &canceled)
	return canceled, err
}

// CancelGroupID is [Client.CancelGroup] with a signature over the Keccak-256 digest of the
// group's id, which is passed to sign as bytes. This signature names no chain, service or time:
// anyone who has seen it can use it again, for ever. Canceling again changes nothing.
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
