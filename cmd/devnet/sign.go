package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The payments of a group: the first may be sent now, the others later.
const (
	groupSize  = 3
	groupEvery = time.Minute
)

// signed is the output of --sign: a payment in hex, or a group's payments as a JSON list.
func signed(random io.Reader, grouped bool, now time.Time) (string, error) {
	if !grouped {
		raw, err := signOne(random)
		return "0x" + hex.EncodeToString(raw), err
	}
	raws, err := signGroup(random, now, groupEvery)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = "0x" + hex.EncodeToString(raw)
	}
	list, err := json.Marshal(texts)
	return string(list), err
}

// signOne signs a payment to be posted by hand.
func signOne(random io.Reader) ([]byte, error) {
	k, err := newNonceKey(random)
	if err != nil {
		return nil, err
	}
	return payment(k).Sign(wallet.Dev(0)), nil
}

// signGroup signs payments that share a nonce key, each valid every later than the one before.
func signGroup(random io.Reader, now time.Time, every time.Duration) (raws [][]byte, err error) {
	k, err := newGroupKey(random)
	if err != nil {
		return nil, err
	}
	for n := range uint64(groupSize) {
		p := payment(k)
		if p.Nonce = n; n > 0 {
			p.Window.After = uint64(now.Add(time.Duration(n) * every).Unix()) //nolint:gosec // after 1970
		}
		raws = append(raws, p.Sign(wallet.Dev(0)))
	}
	return raws, nil
}

// newGroupKey returns the NKG1 nonce key of an unused group: see docs/howto/groups.md.
func newGroupKey(random io.Reader) (k chain.NonceKey, err error) {
	const version, kind, textScopeAndMemo = 1, 2, 0x11
	copy(k[0:], "NKG1")
	k[4], k[5] = version, kind
	binary.BigEndian.PutUint16(k[6:], textScopeAndMemo)
	copy(k[8:16], "PAYROLL")
	copy(k[20:], "JAN-2026")
	_, err = io.ReadFull(random, k[16:20])
	return k, err
}
