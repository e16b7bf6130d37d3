package rig

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/group"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Signature 0x"+hex.EncodeToString(owner.Sign(group.Digest(g))))
	res, err := client().Do(req)
	if err != nil {
		return c, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return c, err
	}
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("cancel answered %s: %s", res.Status, answer)
	}
	return c, json.Unmarshal(answer, &c)
}

// Delete asks the service to look whether a transaction's nonce is used up. It returns
// the answer's status code, and the transaction's status or the problem's code.
func Delete(ctx context.Context, url string, hash chain.Hash) (status int, says string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url+"/v1/transactions/"+hash.String(), nil)
	if err != nil {
		return 0, "", err
	}
	res, err := client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	var answer struct {
		Status json.RawMessage `json:"status"` // a problem's is a number
		Code   string          `json:"code"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return res.StatusCode, "", err
	}
	if answer.Code != "" {
		return res.StatusCode, answer.Code, nil
	}
	err = json.Unmarshal(answer.Status, &says)
	return res.StatusCode, says, err
}
