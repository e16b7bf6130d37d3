package main_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// secretOf returns the private key of a signer.
func secretOf(t *testing.T, n int) []byte {
	t.Helper()
	_, digits, _ := strings.Cut(keys[n], "=")
	secret, err := hex.DecodeString(digits)
	check(t, err)
	return secret
}

// keystore writes a signer's key to a folder in the format of the Web3 Secret Storage
// Definition, version 3, with PBKDF2, and its passphrase beside the folder.
func keystore(t *testing.T, n int) (flags []string) {
	t.Helper()
	const rounds = 262144
	phrase, salt, iv := []byte("correct horse"), make([]byte, 32), make([]byte, aes.BlockSize)
	derived, err := pbkdf2.Key(sha256.New, string(phrase), salt, rounds, 32)
	check(t, err)
	block, err := aes.NewCipher(derived[:16])
	check(t, err)
	sealed := secretOf(t, n)
	cipher.NewCTR(block, iv).XORKeyStream(sealed, sealed)
	mac := chain.Keccak(append(slices.Clone(derived[16:]), sealed...))
	text, err := json.Marshal(map[string]any{
		"version": 3, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "address": hex.EncodeToString(addressOf(n)),
		"crypto": map[string]any{
			"cipher": "aes-128-ctr", "cipherparams": map[string]any{"iv": hex.EncodeToString(iv)}, "ciphertext": hex.EncodeToString(sealed),
			"kdf": "pbkdf2", "kdfparams": map[string]any{"c": rounds, "dklen": 32, "prf": "hmac-sha256", "salt": hex.EncodeToString(salt)},
			"mac": hex.EncodeToString(mac[:]),
		},
	})
	check(t, err)
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "passphrase")
	check(t, os.WriteFile(filepath.Join(dir, "key.json"), text, 0o600))
	check(t, os.WriteFile(file, phrase, 0o600))
	return []string{"--signers-keystore=" + dir, "--signers-passphrase-file=" + file}
}

func addressOf(n int) []byte {
	a := wallet.Dev(n).Address()
	return a[:]
}

// remoteSigner serves a signer's key through Web3Signer's API.
func remoteSigner(t *testing.T, n int) *keystest.Server {
	t.Helper()
	return keystest.Serve(t, &keystest.Key{Kind: chain.Secp256k1, Secret: secretOf(t, n)})
}

// One pool has its key in a keystore, one at a remote signer, and one in the environment.
// Expected: each carries out its intents, on both kinds of chain.
func TestSignersOfEachSource(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			remote := remoteSigner(t, 1)
			w := newWorld(t, k, inFiles, append(keystore(t, 0), "--signers-remote-url="+remote.URL)...)
			s := w.relayer(t)
			s.Env = []string{strings.Replace(keys[2], "KEY_2", "KEY_0", 1)}
			check(t, s.Start(w.ctx))
			requests := slices.Concat(w.several(0, 2, "keystore"), w.several(1, 2, "remote"), w.several(2, 2, "environment"))
			w.create(t, []client{w.client(t, s)}, append(requests, w.forPool(4, "pool")...)...)
			w.done(t, s)
			check(t, s.Stop(w.ctx))
			w.judge(t)
			if remote.Signed() < 2 {
				t.Errorf("the remote signer has signed %d times", remote.Signed())
			}
		})
	}
}

// The key's remote signer is silent, throttles, or fails; produces signatures with the higher s,
// as vaults do; and finally signs with another key. Expected: without a valid signature nothing
// is recorded as signed, intents wait, and no nonce is used up. A wrong signature disables the
// signer at once, until an operator enables it. Every payment is made once, at consecutive
// nonces.
func TestSignerInTrouble(t *testing.T) {
	t.Parallel()
	remote := remoteSigner(t, 0)
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1h", "--signers-remote-url="+remote.URL, "--signers-remote-timeout=300ms")
	w.flags = without(w.flags, "--signers-environment")
	s := w.relayer(t)
	s.Env = nil
	from := w.wants(t, wallet.Dev(0).Address())
	check(t, s.Start(w.ctx))
	c := []client{w.client(t, s)}
	for what, trouble := range map[string]keystest.Trouble{
		"silent":    {Hang: true},
		"throttles": {Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}},
		"fails":     {Status: http.StatusInternalServerError},
		"cut":       {Cut: true},
	} {
		var asked atomic.Int32
		trouble.Reached = func() { asked.Add(1) }
		before := len(w.attempts(t, 0))
		remote.Misbehave(trouble)
		w.create(t, c, w.several(0, 2, what)...)
		w.becomes(t, what+": it is asked again", func() bool { return asked.Load() > 2 })
		if n := len(w.attempts(t, 0)); n != before {
			t.Errorf("%s: %d are signed", what, n-before)
		}
		remote.Misbehave(keystest.Trouble{HighS: true, Form: keystest.DER})
		w.done(t, s)
	}
	remote.Misbehave(keystest.Trouble{By: &keystest.Key{Kind: chain.Secp256k1, Secret: secretOf(t, 1)}})
	last := w.several(0, 2, "another-key")
	w.create(t, c, last...)
	w.becomes(t, "it is disabled", func() bool { return w.signer(t, s, 0).Status == signer.StatusDisabled })
	remote.Misbehave(keystest.Trouble{})
	if got := w.status(t, c[0], last[0]); got != intent.StatusWaiting && got != intent.StatusAssigned {
		t.Errorf("with a key that is disabled an intent is %s", got)
	}
	w.operator(s).order(t, http.MethodPost, w.key(0)+"/resume", map[string]any{})
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	if got, want := w.wants(t, wallet.Dev(0).Address()), from+uint64(len(w.asked)); got != want {
		t.Errorf("the chain wants nonce %d, not %d", got, want)
	}
}
