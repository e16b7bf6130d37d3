// Package payload seals signed bytes for keeping outside the log, where they can
// be erased. Each payload has a data key of its own; the data key is wrapped by a
// master key that is kept apart from the database.
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

// ErrGone says that a payload was erased, or never kept.
var ErrGone = errors.New("payload gone")

// ErrSealed says that a payload is kept and cannot be opened: it was sealed under another
// master key, or is damaged.
var ErrSealed = errors.New("payload cannot be opened")

// Ref names a payload.
type Ref struct {
	Chain chain.ID
	Hash  chain.Hash
}

// Sealed is a payload as it is kept: the bytes under the data key, and the data
// key under the master key. The two go to different tables.
type Sealed struct {
	Ref
	KeyID   uint32 // which master key wrapped the data key
	Wrapped []byte
	Bytes   []byte
}

// Master wraps data keys. The zero value is no key.
type Master struct {
	id   uint32
	aead cipher.AEAD
	root chain.Hash // for Derive

	former []Master
}

// NewMaster makes a master key of [KeyBytes] secret bytes. Its id follows from them.
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

// MastersMax bounds how many master keys are known at once.
const MastersMax = 8

// After is the master key with keys that were used before, or will be: what was sealed
// under one of them opens still, and nothing is sealed under them.
func (m Master) After(former ...Master) Master {
	m.former = former
	return m
}

// Former are the keys that [Master.After] was given.
func (m Master) Former() []Master { return m.former }

// Derive is another secret of [KeyBytes] that follows from the master key: one for
// each purpose, telling nothing of the master key or of each other.
func (m Master) Derive(purpose string) []byte {
	key := chain.Keccak(m.root[:], []byte(purpose))
	return key[:]
}

// Seal seals raw under a fresh data key drawn from random.
func (m Master) Seal(random io.Reader, ref Ref, raw []byte) (Sealed, error) {
	var fresh [KeyBytes + nonceBytes]byte // data key, nonce of the wrapping
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

// Open returns the bytes that were sealed. An error is ErrSealed: a wrong key or damage.
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

// bytes binds a sealed payload to its name, so that rows cannot be swapped.
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
