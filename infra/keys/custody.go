package keys

import (
	"context"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"sync/atomic"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// InCustody is the signer of a key held by a service that signs digests on request: a key
// management service. public is the key as the service returns it, a SubjectPublicKeyInfo in
// DER or PEM. sign returns a signature of a digest in any form that [Remote] accepts.
// [Signer.Sign] returns sign's errors: a [*Busy], a refusal, or a transient error.
func InCustody(public []byte, sign func(ctx context.Context, digest chain.Hash) ([]byte, error)) (*Signer, error) {
	point, kind, err := parsePublic(public)
	if err != nil {
		return nil, err
	}
	return asking(point, kind, func(ctx context.Context, _ []byte, digest chain.Hash) ([]byte, error) {
		return sign(ctx, digest)
	}), nil
}

// asking is the signer of a key held elsewhere. After Close it sends no more requests.
func asking(public []byte, kind chain.SignatureKind, ask func(ctx context.Context, payload []byte, digest chain.Hash) ([]byte, error)) *Signer {
	closed := new(atomic.Bool)
	return &Signer{
		address: addressOf(public),
		kind:    kind,
		public:  public,
		ask: func(ctx context.Context, payload []byte, digest chain.Hash) ([]byte, error) {
			if closed.Load() {
				return nil, fmt.Errorf("the signer is closed: %w", eventlog.ErrClosed)
			}
			return ask(ctx, payload, digest)
		},
		close: func() { closed.Store(true) },
	}
}

// curves are the names of the curves in certificates and public keys. Sources: RFC 5480,
// section 2.1.1.1; SEC 2, appendix A.2.1.
func curves() map[string]chain.SignatureKind {
	return map[string]chain.SignatureKind{"1.2.840.10045.3.1.7": chain.P256, "1.3.132.0.10": chain.Secp256k1}
}

// parsePublic reads x y from a SubjectPublicKeyInfo (RFC 5480, section 2). Go's x509 does not
// support secp256k1.
func parsePublic(text []byte) (point []byte, kind chain.SignatureKind, err error) {
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	var parsed struct {
		Algorithm struct{ Algorithm, Curve asn1.ObjectIdentifier }
		Key       asn1.BitString
	}
	rest, err := asn1.Unmarshal(text, &parsed)
	if err != nil || len(rest) > 0 || parsed.Algorithm.Algorithm.String() != "1.2.840.10045.2.1" {
		return nil, "", ErrBadKey.Because("the public key must be an elliptic curve key in DER or PEM")
	}
	kind = curves()[parsed.Algorithm.Curve.String()]
	if kind == "" {
		return nil, "", ErrBadKey.Because("the key's curve %s is neither P-256 nor secp256k1", parsed.Algorithm.Curve)
	}
	point = parsed.Key.RightAlign()
	if len(point) != 65 || point[0] != 4 || kindOf(point[1:]) != kind { // 4 means "uncompressed"
		return nil, "", ErrBadKey.Because("the public key is not a point of its curve, %s", kind)
	}
	return point[1:], kind, nil
}
