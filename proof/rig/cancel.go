package rig

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
)

// Canceled is the answer to a cancel of a group.
type Canceled struct {
	Canceled int `json:"canceled"`
	Members  []struct {
		TxHash   chain.Hash `json:"txHash"`
		Status   string     `json:"status"`
		Canceled bool       `json:"canceled"`
		Erased   bool       `json:"payloadErased"`
	} `json:"members"`
}

// Cancel cancels the group of a nonce key by its owner's signature over the group's id.
func Cancel(ctx context.Context, url string, owner wallet.Key, key chain.NonceKey) (c Canceled, err error) {
	g := key.Group()
	url = fmt.Sprintf("%s/v1/senders/%s/groups/%s/cancel", url, owner.Address(), g)
	signature := http.Header{"Authorization": {"Signature 0x" + hex.EncodeToString(owner.Sign(group.Digest(g)))}}
	told, err := ask(ctx, http.MethodPost, url, signature, nil)
	if err != nil {
		return c, err
	}
	if err := told.parsed(&c); err != nil {
		return c, fmt.Errorf("cancel: %w", err)
	}
	return c, nil
}

// Delete asks the service to check whether a transaction's nonce is used up. It returns the
// status code, and the transaction's status or the problem's code.
func Delete(ctx context.Context, url string, hash chain.Hash) (status int, says string, err error) {
	told, err := ask(ctx, http.MethodDelete, url+"/v1/transactions/"+hash.String(), nil, nil)
	if err != nil {
		return 0, "", err
	}
	var answer struct {
		Status json.RawMessage `json:"status"` // a problem's status is a number
		Code   string          `json:"code"`
	}
	if err := json.Unmarshal(told.body, &answer); err != nil {
		return told.code, "", err
	}
	if answer.Code != "" {
		return told.code, answer.Code, nil
	}
	err = json.Unmarshal(answer.Status, &says)
	return told.code, says, err
}
