package near

import (
	"crypto/ed25519"
	"crypto/sha3"
	"fmt"
	"strings"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/mr-tron/base58"
)

// KeyType is the scheme of a key and of its signatures; its value is its tag in borsh (nearcore
// core/crypto/src/signature.rs).
type KeyType byte

const (
	Ed25519 KeyType = iota
	Secp256k1
	MLDSA65
	keyTypes
)

// schemes holds, for each key type, its name in texts, and the bytes of its keys and signatures.
var schemes = [keyTypes]struct {
	name           string
	key, signature int
}{
	Ed25519:   {"ed25519", ed25519.PublicKeySize, ed25519.SignatureSize},
	Secp256k1: {"secp256k1", 64, 65}, // X and Y; r, s and the recovery id
	MLDSA65:   {"ml-dsa-65", mldsa65.PublicKeySize, mldsa65.SignatureSize},
}

func (t KeyType) String() string { return schemes[t].name }

// PublicKey is an access key's public half: a type, and that type's number of bytes.
type PublicKey struct {
	Type  KeyType
	Bytes string // a string, so that keys can be compared and be keys of maps
}

// String is the key as nodes show it: the type's name, and the bytes in base58. Nodes show the SHA3-256 of
// an ML-DSA-65 key, since the key has 1,952 bytes.
func (k PublicKey) String() string {
	if k.Type == MLDSA65 {
		sum := sha3.Sum256([]byte(k.Bytes))
		return "ml-dsa-65-hash:" + base58.Encode(sum[:])
	}
	return k.Type.String() + ":" + base58.Encode([]byte(k.Bytes))
}

// ParsePublicKey reads a key from its text, as "ed25519:…" or "secp256k1:…". An ML-DSA-65 key has no text
// that it could be read from.
func ParsePublicKey(text string) (PublicKey, error) {
	name, encoded, found := strings.Cut(text, ":")
	if !found {
		name, encoded = "ed25519", text
	}
	for _, t := range []KeyType{Ed25519, Secp256k1} {
		if name != t.String() {
			continue
		}
		bytes, err := base58.Decode(encoded)
		if err != nil {
			return PublicKey{}, fmt.Errorf("near: the public key is no base58: %w", err)
		}
		if len(bytes) != schemes[t].key {
			return PublicKey{}, fmt.Errorf("near: %s key of %d bytes: it has %d", name, len(bytes), schemes[t].key)
		}
		return PublicKey{Type: t, Bytes: string(bytes)}, nil
	}
	return PublicKey{}, fmt.Errorf("near: unknown key type %q", name)
}

// Signature is a signature: its type, and that type's number of bytes.
type Signature struct {
	Type  KeyType
	Bytes []byte
}

// String is the signature as nodes show it.
func (s Signature) String() string { return s.Type.String() + ":" + base58.Encode(s.Bytes) }

// Verify reports whether the signature is the key's, of these 32 bytes. A secp256k1 signature's s must lie in
// the lower half of the order, and its recovery id below 4; the id is not checked otherwise, as in a node.
func (k PublicKey) Verify(hash [32]byte, s Signature) bool {
	if k.Type != s.Type || len(s.Bytes) != schemes[s.Type].signature {
		return false
	}
	switch k.Type {
	case Ed25519:
		return ed25519.Verify([]byte(k.Bytes), hash[:], s.Bytes)
	case Secp256k1:
		if s.Bytes[64] >= 4 {
			return false
		}
		return crypto.VerifySignature(append([]byte{4}, k.Bytes...), hash[:], s.Bytes[:64])
	case MLDSA65:
		var key mldsa65.PublicKey
		if err := key.UnmarshalBinary([]byte(k.Bytes)); err != nil {
			return false
		}
		return mldsa65.Verify(&key, hash[:], nil, s.Bytes)
	}
	panic(fmt.Sprintf("near: verify with key type %d", k.Type))
}

func (r *reader) keyType() KeyType {
	t := r.u8()
	if r.err == nil && t >= byte(keyTypes) {
		r.fail("unknown key type '%d'", t)
		return 0
	}
	return KeyType(t)
}

func (r *reader) publicKey() PublicKey {
	t := r.keyType()
	return PublicKey{Type: t, Bytes: string(r.take(schemes[t].key))}
}

func (r *reader) signature() Signature {
	t := r.keyType()
	bytes := r.take(schemes[t].signature)
	// An ed25519 signature's s is below 2^253, and a node's library refuses bytes that exceed that.
	if r.err == nil && t == Ed25519 && bytes[len(bytes)-1]&0xe0 != 0 {
		r.fail("signature error")
	}
	return Signature{Type: t, Bytes: bytes}
}

func (w *writer) publicKey(k PublicKey) { w.u8(byte(k.Type)); *w = append(*w, k.Bytes...) }
func (w *writer) signature(s Signature) { w.u8(byte(s.Type)); w.raw(s.Bytes) }
