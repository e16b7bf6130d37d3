package tempo_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// An authorization counts as the account's own only if the account's key signed it, for this
// chain, this key and this kind of key, and it has no unknown fields.
func TestAuthorizedBySender(t *testing.T) {
	other, account := payerKey(t), testAccount(t)
	key := p256Account(t)
	terms := func(change func([]any) []any) []any {
		all := []any{uint64(42431), uint64(1), key[:], uint64(1_900_000_000)}
		if change == nil {
			return all
		}
		return change(all)
	}
	at := func(place int, item any) func([]any) []any {
		return func(all []any) []any { all[place] = item; return all }
	}
	more := func(items ...any) func([]any) []any {
		return func(all []any) []any { return append(all, items...) }
	}
	none := []byte{}
	for _, c := range []struct {
		name   string
		by     string
		change func([]any) []any
		legacy bool
		want   bool
	}{
		{name: "the account's", by: "root", want: true},
		{name: "for an account that it names", by: "root", change: more(none, none, none, none, account[:]), want: true},
		{name: "an admin's", by: "root", change: more(none, none, none, uint64(1)), want: true},
		{name: "signed by another", by: "other"},
		{name: "signed by the key itself", by: "key"},
		{name: "for another chain", by: "root", change: at(0, uint64(1))},
		{name: "for every chain", by: "root", change: at(0, uint64(0))},
		{name: "for another kind of key", by: "root", change: at(1, uint64(0))},
		{name: "for another key", by: "root", change: at(2, recipient)},
		{name: "for another account", by: "root", change: more(none, none, none, none, recipient)},
		{name: "with a field of later forks", by: "root", change: more(none, none, none, none, account[:], uint64(7))},
		{name: "used by the old form of signature", by: "root", legacy: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := terms(c.change)
			encoded, err := rlp.EncodeToBytes(inner)
			if err != nil {
				t.Fatal(err)
			}
			digest := chain.Keccak(encoded)
			sign := map[string]func() []byte{
				"root":  func() []byte { return secp256k1(t, digest) },
				"key":   func() []byte { return append(append([]byte{0x01}, p256Sign(t, digest)...), 0) },
				"other": func() []byte { sig, err := crypto.Sign(digest[:], other); must(t, err); sig[64] += 27; return sig },
			}[c.by]
			f := append(plain(), any([]any{inner, sign()}))
			version, over := byte(0x04), chain.Keccak([]byte{0x04}, digestOf(t, f), account[:])
			if c.legacy {
				version, over = 0x03, f.digest(t)
			}
			sig := append(append([]byte{version}, account[:]...), 0x01)
			got, err := tempo.Decode(f.signed(t, append(append(sig, p256Sign(t, over)...), 0)))
			if err != nil {
				t.Fatal(err)
			}
			if got.Sender != account || got.Signature != chain.Keychain || *got.AccessKey != key {
				t.Fatalf("decoded %+v", got)
			}
			if got.Authorized != c.want || c.want && got.AuthorizedUntil != 1_900_000_000 {
				t.Errorf("authorized %v until %d, want %v", got.Authorized, got.AuthorizedUntil, c.want)
			}
		})
	}
}

func digestOf(t *testing.T, f fields) []byte { d := f.digest(t); return d[:] }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
