package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// held are the served keys, and their custodian.
type held struct {
	custodian Custodian
	names     []string
	signers   []*keys.Signer
}

// open reads the public keys from the service, and compares their accounts with the listed ones.
// A wrong key then keeps the program from starting, instead of cutting an account off from its
// money.
func open(ctx context.Context, c Custodian, listed []listedKey, timeout time.Duration) (held, error) {
	all := held{custodian: c}
	seen := map[chain.Address]string{}
	for _, k := range listed {
		one, err := openOne(ctx, c, k, timeout)
		if err != nil {
			return held{}, fmt.Errorf("key %s: %w", k.name, err)
		}
		if other, twice := seen[one.Address()]; twice {
			return held{}, fmt.Errorf("%s and %s are the same key, of %s", other, k.name, one.Address())
		}
		seen[one.Address()] = k.name
		all.names = append(all.names, k.name)
		all.signers = append(all.signers, one)
	}
	return all, nil
}

func openOne(ctx context.Context, c Custodian, k listedKey, timeout time.Duration) (*keys.Signer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	public, err := c.PublicKey(ctx, k.name)
	if err != nil {
		return nil, err
	}
	signer, err := keys.InCustody(public, func(ctx context.Context, digest chain.Hash) ([]byte, error) {
		return c.Sign(ctx, k.name, digest)
	})
	switch {
	case err != nil:
		return nil, err
	case k.address == "":
		return nil, badSetting("it is the key of %s; if this is the intended account, list it as %s=%s", signer.Address(), signer.Address(), k.name)
	case signer.Address().String() != k.address:
		return nil, fmt.Errorf("it is the key of %s, not of %s", signer.Address(), k.address)
	}
	return signer, nil
}

// check reads the first key's public key: a program without access to it cannot sign either.
func (h held) check(ctx context.Context) error {
	public, err := h.custodian.PublicKey(ctx, h.names[0])
	if err != nil {
		return err
	}
	again, err := keys.InCustody(public, nil)
	if err == nil && !bytes.Equal(again.PublicKey(), h.signers[0].PublicKey()) {
		err = errors.New("the first key differs from the key at the start")
	}
	return err
}
