package keys

import (
	"context"
	stdcrypto "crypto"
	"crypto/ecdsa"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// secp256k1 is the signer of a private key's 32 bytes, which it clears. It derives k from the
// key and the digest (RFC 6979): the same payload gives the same bytes.
func secp256k1(secret []byte, where string) (*Signer, error) {
	key, err := crypto.ToECDSA(secret)
	clear(secret)
	if err != nil { // its text is left out, because it may quote the key
		return nil, ErrBadKey.Because("%s holds no private key of secp256k1: 32 bytes, not zero and below the curve's order", where)
	}
	public := crypto.FromECDSAPub(&key.PublicKey)[1:]
	return local(chain.Secp256k1, public, key, func(digest chain.Hash) ([]byte, error) {
		return crypto.Sign(digest[:], key)
	}), nil
}

// p256 is the signer of a P-256 key; k is derived by RFC 6979.
func p256(key *ecdsa.PrivateKey) (*Signer, error) {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, ErrBadKey.Because("the public key is not a point of P-256")
	}
	return local(chain.P256, point[1:], key, func(digest chain.Hash) ([]byte, error) {
		return key.Sign(nil, digest[:], stdcrypto.SHA256) // nil means deterministic: RFC 6979
	}), nil
}

// local is the signer of a key in this process's memory.
func local(kind chain.SignatureKind, public []byte, key *ecdsa.PrivateKey, sign func(chain.Hash) ([]byte, error)) *Signer {
	var lock sync.RWMutex // held for writing while the key is cleared
	closed := false
	return &Signer{
		address: addressOf(public),
		kind:    kind,
		public:  public,
		ask: func(_ context.Context, _ []byte, digest chain.Hash) ([]byte, error) {
			lock.RLock()
			defer lock.RUnlock()
			if closed {
				return nil, fmt.Errorf("the key is closed: %w", eventlog.ErrClosed)
			}
			return sign(digest)
		},
		close: func() {
			lock.Lock()
			defer lock.Unlock()
			closed = true
			clear(key.D.Bits()) //nolint:staticcheck // SA1019: there is no other way to clear it
		},
	}
}
