// Package payload encrypts signed bytes for storage outside the log, where they can be erased.
// Each payload has its own data key, wrapped by a master key that is stored apart from the
// database.
package payload

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// KeyBytes is the length of master and data keys: AES-256.
const KeyBytes = 32

// ErrGone reports that a payload was erased, or never stored.
var ErrGone = errors.New("payload gone")

// ErrSealed reports that a stored payload cannot be opened: it was sealed under another master
// key, or is damaged.
var ErrSealed = errors.New("payload cannot be opened")

// Ref identifies a payload.
type Ref struct {
	Chain chain.ID
	Hash  chain.Hash
}

// Sealed is a stored payload: the bytes under the data key, and the data key under the master
// key. The two are stored in different tables.
type Sealed struct {
	Ref
	KeyID   uint32 // id of the master key that wrapped the data key
	Wrapped []byte
	Bytes   []byte
}

// Master is a master key, which wraps data keys. The zero value is invalid.
type Master struct {
	id   uint32
	aead cipher.AEAD
	root chain.Hash // for Derive

	former []Master
}

// NewMaster returns a master key of [KeyBytes] secret bytes. Its id is derived from them.
func NewMaster(secret []byte) (Master, error) {
	if len(secret) != KeyBytes {
		return Master{}, fmt.Errorf("master key has %d bytes, not %d", len(secret), KeyBytes)
	}
	aead, err := gcm(secret)
	if err != nil {
		return Master{}, err
	}
	digest := chain.Keccak([]byte("watchtower payload master key"), secret)
	root := chain.Keccak([]byte("watchtower derived keys"), secret)
	return Master{id: binary.BigEndian.Uint32(digest[:]), aead: aead, root: root}, nil
}

// MastersMax bounds the number of configured master keys.
const MastersMax = 8

// After returns the master key with other keys, past or future ones, that only open payloads.
func (m Master) After(former ...Master) Master {
	m.former = former
	return m
}

// Former returns the keys given to [Master.After].
func (m Master) Former() []Master { return m.former }

// Derive returns another secret of [KeyBytes], derived from the master key for one purpose. It
// reveals nothing about the master key or other derived secrets.
func (m Master) Derive(purpose string) []byte {
	key := chain.Keccak(m.root[:], []byte(purpose))
	return key[:]
}

// Seal encrypts raw under a fresh data key drawn from random.
func (m Master) Seal(random io.Reader, ref Ref, raw []byte) (Sealed, error) {
	var fresh [KeyBytes + nonceBytes]byte // data key and nonce of the wrapping
	if _, err := io.ReadFull(random, fresh[:]); err != nil {
		return Sealed{}, fmt.Errorf("draw a data key: %w", err)
	}
	data, err := gcm(fresh[:KeyBytes])
	if err != nil {
		return Sealed{}, err
	}
	bound := ref.bytes()
	nonce := fresh[KeyBytes:]
	return Sealed{
		Ref: ref, KeyID: m.id,
		Wrapped: m.aead.Seal(append([]byte{}, nonce...), nonce, fresh[:KeyBytes], bound),
		// A data key seals once, so its nonce may be constant.
		Bytes: data.Seal(nil, make([]byte, nonceBytes), raw, bound),
	}, nil
}

// Open returns the decrypted bytes. Its error is ErrSealed: a wrong key or damage.
func (m Master) Open(s Sealed) ([]byte, error) {
	for _, f := range m.former {
		if s.KeyID == f.id && s.KeyID != m.id {
			return f.Open(s)
		}
	}
	if s.KeyID != m.id {
		return nil, fmt.Errorf("%w: %s was sealed under master key %08x, not %08x", ErrSealed, s.Hash, s.KeyID, m.id)
	}
	if len(s.Wrapped) < nonceBytes {
		return nil, fmt.Errorf("%w: %s: the wrapped key is cut short", ErrSealed, s.Hash)
	}
	bound := s.Ref.bytes()
	key, err := m.aead.Open(nil, s.Wrapped[:nonceBytes], s.Wrapped[nonceBytes:], bound)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: unwrap key: %w", ErrSealed, s.Hash, err)
	}
	data, err := gcm(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSealed, s.Hash, err)
	}
	raw, err := data.Open(nil, make([]byte, nonceBytes), s.Bytes, bound)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSealed, s.Hash, err)
	}
	return raw, nil
}

const nonceBytes = 12

// bytes returns the associated data that binds a sealed payload to its Ref, so that rows cannot
// be swapped.
func (r Ref) bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(r.Chain)), r.Hash[:]...)
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
