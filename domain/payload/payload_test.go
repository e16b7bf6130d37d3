package payload

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func TestSeal(t *testing.T) {
	master, err := NewMaster(bytes.Repeat([]byte{1}, KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewMaster(bytes.Repeat([]byte{2}, KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	ref := Ref{Chain: 42431, Hash: chain.Keccak([]byte("t"))}
	raw := []byte("signed bytes, signed bytes")
	sealed, err := master.Seal(rand.Reader, ref, raw)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed.Bytes, raw[:12]) || bytes.Contains(sealed.Wrapped, raw[:12]) {
		t.Error("the sealed row shows the bytes")
	}
	if got, err := master.Open(sealed); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("opened %q, %v", got, err)
	}
	if _, err := other.Open(sealed); err == nil {
		t.Error("another master key opened it")
	}

	for name, damage := range map[string]func(*Sealed){
		"bytes flipped":      func(s *Sealed) { s.Bytes[0] ^= 1 },
		"key flipped":        func(s *Sealed) { s.Wrapped[20] ^= 1 },
		"key cut":            func(s *Sealed) { s.Wrapped = s.Wrapped[:3] },
		"row of another":     func(s *Sealed) { s.Hash[0] ^= 1 },
		"row of other chain": func(s *Sealed) { s.Chain++ },
	} {
		damaged := sealed
		damaged.Bytes, damaged.Wrapped = bytes.Clone(sealed.Bytes), bytes.Clone(sealed.Wrapped)
		damage(&damaged)
		if _, err := master.Open(damaged); err == nil {
			t.Errorf("%s: it opened", name)
		}
	}
	if _, err := NewMaster([]byte("short")); err == nil {
		t.Error("a short master key was taken")
	}
	if _, err := master.Seal(bytes.NewReader(nil), ref, raw); err == nil {
		t.Error("sealed without randomness")
	}
}

// A payload sealed under a replaced key still opens, and no new payload is sealed under that key.
func TestFormerKeys(t *testing.T) {
	key := func(n byte) Master {
		m, err := NewMaster(bytes.Repeat([]byte{n}, KeyBytes))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	raw := []byte("signed bytes")
	seal := func(m Master) Sealed {
		s, err := m.Seal(rand.Reader, Ref{Chain: 1}, raw)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	both := key(2).After(key(1))
	for name, s := range map[string]Sealed{"before": seal(key(1)), "since": seal(both)} {
		if got, err := both.Open(s); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("sealed %s: %q, %v", name, got, err)
		}
	}
	if _, err := key(2).Open(seal(both)); err != nil {
		t.Errorf("it is not sealed under the newest: %v", err)
	}
	if _, err := both.Open(seal(key(3))); !errors.Is(err, ErrSealed) {
		t.Errorf("a strange key: %v", err)
	}
	if !bytes.Equal(both.Derive("x"), key(2).Derive("x")) {
		t.Error("secrets that follow from it are others")
	}
}
