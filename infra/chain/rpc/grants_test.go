package rpc

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestGrants(t *testing.T) {
	for name, faults := range map[string]chaintest.Faults{
		"a node that does everything": {}, "a node without block hashes": {NoBlockHashes: true}, "a node without batches": {NoBatch: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, chaintest.Rules{})
			n := c.Node("a")
			n.Set(faults)
			r := open(t, nil, serve(t, n)).Reader()
			keys := []chain.AccessKey{{Account: alice, Key: bob}, {Account: bob, Key: alice}, {Account: alice, Key: chain.Address{3}}, {Account: alice, Key: chain.Address{4}}}
			want := []chain.Grant{
				{Known: true, Kind: chain.WebAuthn, Expires: 1<<64 - 1}, {Known: true, Kind: chain.Secp256k1, Expires: 7, Revoked: true}, {}, {Revoked: true},
			}
			for i, k := range keys {
				c.SetGrant(k, want[i])
			}
			b := mine(t, c)
			got, err := r.Grants(t.Context(), b, keys)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if got, err := r.Grants(t.Context(), chain.Block{Number: b.Number, Hash: chain.Hash{1}}, keys); err == nil {
				t.Errorf("%v at a block that is not there", got)
			}
			if got, err := r.Grants(t.Context(), b, nil); err != nil || len(got) != 0 {
				t.Errorf("%v, %v for no keys", got, err)
			}
			many := slices.Repeat(keys[:1], 2*maxBatch)
			if got, err := r.Grants(t.Context(), b, many); err != nil || len(got) != len(many) || got[maxBatch] != want[0] {
				t.Errorf("%d grants for %d keys: %v", len(got), len(many), err)
			}
		})
	}
}

// A granted key lets transactions into an account's groups, so one endpoint's claim is not
// enough.
func TestNoGrantOnOneWord(t *testing.T) {
	word := func(digits string) string { return strings.Repeat("0", 64-len(digits)) + digits }
	k := chain.AccessKey{Account: alice, Key: bob}
	lie := `"0x` + word("1") + word(bob.String()[2:]) + word("ffffffff") + word("") + word("") + `"`
	for _, n := range []int{2, 3} {
		c := newCourt(t, n, nil)
		b := mine(t, c.Chain)
		c.liar.replace(t, "eth_call", `"result":`+lie)
		r := c.pool.Reader()
		if got, err := r.Grants(t.Context(), b, []chain.AccessKey{k}); err == nil {
			t.Errorf("believed %+v", got)
		}
		if got, err := r.Grants(t.Context(), b, []chain.AccessKey{k}); err != nil || got[0].Known {
			t.Errorf("then: %+v, %v", got, err)
		}
	}
	c := newCourt(t, 3, nil)
	c.SetGrant(k, chain.Grant{Known: true, Kind: chain.P256, Expires: 9})
	if got, err := c.pool.Reader().Grants(t.Context(), mine(t, c.Chain), []chain.AccessKey{k}); err != nil || !got[0].Known {
		t.Errorf("the truth: %+v, %v", got, err)
	}
}

// A malformed grant changes nothing about the key.
func TestGrantsThatAreNone(t *testing.T) {
	word := func(last string) string { return "000000000000000000000000" + last }
	aliceWord, bobWord := word(alice.String()[2:]), word(bob.String()[2:])
	number := func(n string) string { return word("00000000000000000000000000000000000000" + n) }
	far := "0000000000000000000000000000000000000000000000010000000000000000"
	k := chain.AccessKey{Account: alice, Key: bob}
	for name, text := range map[string]string{
		"nothing":             `"0x"`,
		"null":                `null`,
		"four words":          `"0x` + number("00") + bobWord + number("09") + number("00") + `"`,
		"another key":         `"0x` + number("00") + aliceWord + number("09") + number("00") + number("00") + `"`,
		"an expiry beyond":    `"0x` + number("00") + bobWord + far + number("00") + number("00") + `"`,
		"something else":      `{"a": 1}`,
		"an odd digit":        `"0x123"`,
		"not a number at all": `"no"`,
	} {
		if g, err := parseGrant(reply{result: json.RawMessage(text)}, k); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
	later := `"0x` + number("03") + bobWord + number("09") + number("00") + number("00") + `"`
	g, err := parseGrant(reply{result: json.RawMessage(later)}, k)
	if err != nil || g.Doubt(chain.Secp256k1, 1) == "" || g.Doubt(chain.WebAuthn, 1) == "" {
		t.Errorf("a kind of a later node: %+v, %v", g, err)
	}
}

// On a real node a key is unknown before its authorization is executed and known afterwards.
func TestAnvilGrants(t *testing.T) {
	p := anvil(t, "--network", "tempo", "--hardfork", "T4")
	r, ctx, named := p.Reader(), t.Context(), vectors(t)
	v := named["key-authorization"]
	account, err := chain.ParseAddress(v.Sender)
	if err != nil {
		t.Fatal(err)
	}
	fund(t, p, account)
	control(t, p, new(json.RawMessage), "evm_mine")
	before, err := r.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	raw, hash := v.bytes(t)
	if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
		t.Fatalf("%+v", got)
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	after, err := r.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	key, err := chain.ParseAddress("0xecfc629e34c4ff6b6ce36238302962463f8e8d33")
	if err != nil {
		t.Fatal(err)
	}
	keys := []chain.AccessKey{{Account: account, Key: key}, {Account: key, Key: account}}
	if got, err := r.Grants(ctx, before, keys); err != nil || got[0].Known || got[1].Known {
		t.Errorf("before: %+v %v", got, err)
	}
	got, err := r.Grants(ctx, after, keys)
	if err != nil || !got[0].Known || got[1].Known {
		t.Fatalf("after: %+v %v", got, err)
	}
	if d := got[0].Doubt(chain.Secp256k1, after.Time); d != "" {
		t.Errorf("%+v: %s", got[0], d)
	}
	if d := got[0].Doubt(chain.P256, after.Time); d == "" {
		t.Errorf("%+v is good for P-256 too", got[0])
	}
}
