package keys_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Files made by other programs: the PBKDF2 test vector of the Web3 Secret Storage Definition,
// which has no address, and a file by geth, with scrypt.
func TestKeystoreVectors(t *testing.T) {
	for _, c := range []struct{ file, passphrase, account string }{
		{`{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},
			"ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46","kdf":"pbkdf2",
			"kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256","salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
			"mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}`,
			"testpassword", "0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b"},
		{`{"address":"f466859ead1932d743d622cb74fc058882e8648a","crypto":{"cipher":"aes-128-ctr",
			"ciphertext":"cb664472deacb41a2e995fa7f96fe29ce744471deb8d146a0e43c7898c9ddd4d",
			"cipherparams":{"iv":"dfd9ee70812add5f4b8f89d0811c9158"},"kdf":"scrypt","kdfparams":{"dklen":32,"n":8,"p":16,"r":8,
			"salt":"0d6769bf016d45c479213990d6a08d938469c4adad8a02ce507b4a4e7b7739f1"},
			"mac":"bac9af994b15a45dd39669fc66f9aa8a3b9dd8c22cb16e4d8d7ea089d0f1a1a9"},"id":"472e8b3d-afb6-45b5-8111-72c89895099a","version":3}`,
			"foobar", "0xf466859ead1932d743d622cb74fc058882e8648a"},
	} {
		signers, err := keys.Keystore(t.Context(), folder(t, map[string]string{"k": c.file}), keys.PassphraseFile(inFile(t, c.passphrase)))
		if got := only(t, signers, err).Address(); got != address(c.account) {
			t.Errorf("the account is %s, want %s", got, c.account)
		}
	}
}

func TestKeystoreFolder(t *testing.T) {
	named := func(a chain.Address) func(map[string]any) {
		return func(file map[string]any) { file["address"] = strings.TrimPrefix(a.String(), "0x") }
	}
	dir := folder(t, map[string]string{
		"b":       encrypted(t, secretB, phrase, named(accountB)),
		"a":       encrypted(t, secretA, phrase, func(f map[string]any) { f["address"] = strings.ToUpper(accountA.String()[2:]) }),
		".hidden": "no keystore file",
	})
	// A mounted secret is a link into a folder next to it.
	if err := os.MkdirAll(filepath.Join(dir, "beside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "beside", "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("beside", "b"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	variable := keys.PassphraseVariable("PHRASE", func(name string) (string, bool) { return phrase, name == "PHRASE" })
	signers, err := keys.Keystore(t.Context(), dir, variable)
	if err != nil || len(signers) != 2 || signers[0].Address() != accountA || signers[1].Address() != accountB {
		t.Fatalf("signers %v (%v)", signers, err)
	}
	secrets.Printed(t, variable)
	for _, s := range signers {
		s.Close()
	}

	_, err = keys.Keystore(t.Context(), dir, keys.PassphraseVariable("PHRASE", func(string) (string, bool) { return "", false }))
	refusal(t, err, keys.ErrBadSetting, "variable PHRASE")
	_, err = keys.Keystore(t.Context(), dir, keys.PassphraseFile(filepath.Join(dir, "missing")))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing passphrase: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err = keys.Keystore(ctx, dir, variable); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
}

func TestKeystoreRefuses(t *testing.T) {
	crypto := func(field string, value any) func(map[string]any) {
		return func(file map[string]any) { file["crypto"].(map[string]any)[field] = value }
	}
	derivation := func(field string, value any) func(map[string]any) {
		return func(file map[string]any) {
			file["crypto"].(map[string]any)["kdfparams"].(map[string]any)[field] = value
		}
	}
	top := func(field string, value any) func(map[string]any) {
		return func(file map[string]any) { file[field] = value }
	}
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		says   string
	}{
		{"another's address", top("address", accountB.String()), "names " + accountB.String() + ", but its key belongs to " + accountA.String()},
		{"address that is none", top("address", "f39f"), "address"},
		{"version 1", top("version", 1), "version 3"},
		{"version in words", top("version", "3"), "not a keystore file"},
		{"another cipher", crypto("cipher", "aes-128-cbc"), "aes-128-ctr"},
		{"short ciphertext", crypto("ciphertext", secretA[2:]), "ciphertext is not 32 bytes"},
		{"short iv", crypto("cipherparams", map[string]any{"iv": "00"}), "iv is not 16 bytes"},
		{"no mac", crypto("mac", ""), "mac is not 32 bytes"},
		{"another mac", crypto("mac", strings.Repeat("00", 32)), "passphrase"},
		{"no derivation", crypto("kdf", "none"), "key derivation"},
		{"parameters of a wrong type", crypto("kdfparams", []int{1}), "not a keystore file"},
		{"salt that is none", derivation("salt", "xyz"), "salt"},
		{"dklen of 16", derivation("dklen", 16), "dklen"},
		{"n that is no power of two", derivation("n", 3), "not valid for scrypt"},
		{"n below 2", derivation("n", 1), "key derivation"},
		{"n of a word", derivation("n", "2"), "not a keystore file"},
		{"negative r", derivation("r", -8), "key derivation"},
		{"too much memory", derivation("n", 1<<20), "too expensive"},
		{"too much work", derivation("p", 1<<22), "too expensive"},
		{"more than a number holds", derivation("p", 1<<62), "too expensive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"k": encrypted(t, secretA, phrase, c.change)})
			signers, err := keys.Keystore(t.Context(), dir, keys.PassphraseFile(inFile(t, phrase)))
			refusal(t, err, keys.ErrBadKey, c.says)
			if signers != nil {
				t.Errorf("refused, it gives %v", signers)
			}
		})
	}
	good := encrypted(t, secretA, phrase, nil)
	zero := encrypted(t, strings.Repeat("00", 32), phrase, nil)
	for _, c := range []struct {
		name, passphrase, says string
		files                  map[string]string
	}{
		{"wrong passphrase", phrase + " ", "passphrase", map[string]string{"k": good}},
		{"empty passphrase", "", "passphrase", map[string]string{"k": good}},
		{"empty folder", phrase, "0 files", nil},
		{"same key twice", phrase, "hold the same key", map[string]string{"k": good, "l": good}},
		{"a stranger's file", phrase, "README: it is not a keystore file", map[string]string{"k": good, "README": "keys of A"}},
		{"a key in the clear", phrase, "it is not a keystore file", map[string]string{"k": secretA}},
		{"key that is none", phrase, "no private key", map[string]string{"k": zero}},
		{"huge file", phrase, "more than", map[string]string{"k": good + strings.Repeat(" ", 64<<10)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := keys.Keystore(t.Context(), folder(t, c.files), keys.PassphraseFile(inFile(t, c.passphrase)))
			refusal(t, err, keys.ErrBadKey, c.says)
		})
	}
}
