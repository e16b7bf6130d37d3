package keys

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The routes of Web3Signer's API for keys of Ethereum accounts. A key's name is its public key,
// x y in hex. Source: Consensys/web3signer, openapi-specs/eth1.
const (
	routeOfKeys = "/api/v1/eth1/publicKeys"
	routeOfSign = "/api/v1/eth1/sign/"
)

// Limits of one answer, in bytes.
const (
	maxSignature = 1 << 10
	maxKeyList   = 64 + MaxKeys*(2+128+3) // 0x, two numbers, quotes and comma
)

// Remote is a signer in another process with the HTTP API of Web3Signer: Web3Signer itself,
// which has keys of secp256k1, or a server with this API for a key vault, which may have keys
// of P-256. It receives the payload and hashes it itself.
//
// Its answers are not trusted, and errors repeat only their status and addresses derived from
// them.
type Remote struct {
	client *remoteClient
}

// NewRemote reads the settings. It sends no request yet.
func NewRemote(s RemoteSettings) (*Remote, error) {
	client, err := newRemoteClient(s)
	if err != nil {
		return nil, err
	}
	return &Remote{client}, nil
}

// Signers requests the list of keys, and returns a signer for each of them.
func (r *Remote) Signers(ctx context.Context) ([]*Signer, error) {
	answer, err := r.client.exchange(ctx, http.MethodGet, routeOfKeys, nil, maxKeyList)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return nil, ErrBadSetting.Because("the remote signer %s has no list of keys at %s (404)", r.client.host, routeOfKeys)
	case err != nil:
		return nil, fmt.Errorf("keys of the remote signer %s: %w", r.client.host, err)
	}
	var listed []string
	if err := json.Unmarshal(answer, &listed); err != nil || len(listed) == 0 || len(listed) > MaxKeys {
		return nil, ErrBadKey.Because("the remote signer %s lists no keys, or more than %d", r.client.host, MaxKeys)
	}
	signers := make([]*Signer, len(listed))
	seen := map[chain.Address]bool{}
	for i, text := range listed {
		public, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		kind := kindOf(public)
		if err != nil || kind == "" {
			return nil, ErrBadKey.Because("entry %d in the list of the remote signer %s is not a public key of secp256k1 or P-256: 64 bytes in hex", i, r.client.host)
		}
		signers[i] = r.signer(public, kind)
		if a := signers[i].address; seen[a] {
			return nil, ErrBadKey.Because("the remote signer %s lists the key of %s twice", r.client.host, a)
		}
		seen[signers[i].address] = true
	}
	return signers, nil
}

// kindOf returns the curve on which a public key, x y, is a point; empty if on none.
func kindOf(public []byte) chain.SignatureKind {
	point := append([]byte{4}, public...) // "uncompressed"
	if _, err := crypto.UnmarshalPubkey(point); err == nil {
		return chain.Secp256k1
	}
	if _, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point); err == nil {
		return chain.P256
	}
	return ""
}

// signer signs with one of the keys. Closing it does not close the remote's connections.
func (r *Remote) signer(public []byte, kind chain.SignatureKind) *Signer {
	return asking(public, kind, func(ctx context.Context, payload []byte, _ chain.Hash) ([]byte, error) {
		return r.sign(ctx, public, payload)
	})
}

// sign requests one signature: r s v in hex.
func (r *Remote) sign(ctx context.Context, public, payload []byte) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"data": "0x" + hex.EncodeToString(payload)})
	if err != nil {
		return nil, err
	}
	answer, err := r.client.exchange(ctx, http.MethodPost, routeOfSign+"0x"+hex.EncodeToString(public), body, maxSignature)
	if err != nil {
		return nil, fmt.Errorf("remote signer %s: %w", r.client.host, err)
	}
	signature, err := hex.DecodeString(strings.TrimPrefix(string(bytes.TrimSpace(answer)), "0x"))
	if err != nil { // the error quotes its input
		return nil, fmt.Errorf("remote signer %s: %w", r.client.host, errForm)
	}
	return signature, nil
}

// Close closes the connections. Its signers must not be used any more.
func (r *Remote) Close() { r.client.http.CloseIdleConnections() }

// refused converts an answer other than 200 to an error.
func refused(status int, header http.Header) error {
	switch {
	case status == http.StatusNotFound:
		return ErrUnknownKey.Because("the remote signer does not know the key (404)")
	case status == http.StatusTooManyRequests || status >= 500:
		return busy(status, header)
	case status >= 300 && status < 400:
		return ErrBadSetting.Because("the remote signer redirects (%d), which is not followed", status)
	default:
		return ErrRejected.Because("the remote signer responded %d", status)
	}
}

// errTooLong is an answer above its limit.
var errTooLong = errors.New("the remote signer's response is too long")
