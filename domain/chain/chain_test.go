package chain

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// Worked examples and edge cases of the NKG1 format.
func TestExplicit(t *testing.T) {
	cases := []struct{ name, key, display string }{
		{"numeric", "4e4b4731" + "0102" + "0000" + "0000000000000001" + "0000002a" + "0102030405060708090a0b0c",
			"kind=0x02, scope=1, group=42, memo=0x0102030405060708090a0b0c"},
		{"text scope and memo", "4e4b4731" + "0102" + "0011" + "504159524f4c4c00" + "00000f42" + "4a414e2d3230323600000000",
			"kind=0x02, scope=PAYROLL, group=3906, memo=JAN-2026"},
		{"text that cannot be printed falls back to hex", "4e4b4731" + "0102" + "0001" + "5041590a4f4c4c00" + "00000f42" + "000000000000000000000000",
			"kind=0x02, scope=0x5041590a4f4c4c00, group=3906, memo=0x000000000000000000000000"},
		{"text group", "4e4b4731" + "01ff" + "0004" + "0000000000000000" + "41420000" + "000000000000000000000000",
			"kind=0xff, scope=0, group=AB, memo=0x000000000000000000000000"},
		{"other magic", "4e4b4732" + "0102" + strings.Repeat("00", 26), ""},
		{"other version", "4e4b4731" + "0202" + strings.Repeat("00", 26), ""},
		{"reserved flag bit", "4e4b4731" + "0102" + "0040" + strings.Repeat("00", 24), ""},
		{"reserved encoding", "4e4b4731" + "0102" + "0002" + strings.Repeat("00", 24), ""},
		{"zero", strings.Repeat("00", 32), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			key, err := ParseNonceKey("0x" + c.key)
			if err != nil {
				t.Fatal(err)
			}
			e, ok := key.Explicit()
			if ok != (c.display != "") || ok && e.String() != c.display {
				t.Errorf("%v %q, want %q", ok, e, c.display)
			}
		})
	}
}

func TestText(t *testing.T) {
	var v struct {
		Hash  Hash
		Addr  Address
		Key   NonceKey
		Group GroupID
		Wish  IntentID
	}
	v.Hash[0], v.Addr[19], v.Key[31], v.Group[15], v.Wish[0] = 0xab, 1, 5, 7, 9
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"Key":"0x5"`) {
		t.Errorf("a nonce key is minimal hex: %s", data)
	}
	back := v
	back.Hash, back.Key = Hash{}, NonceKey{}
	if err := json.Unmarshal([]byte(strings.ToUpper(hexOnly(string(data)))), &back); err == nil {
		t.Error("0X must be refused")
	}
	if err := json.Unmarshal(data, &back); err != nil || back != v {
		t.Errorf("%v: %v is not %v", err, back, v)
	}
	for _, bad := range []string{"", "0x", "0xzz", "ab", "0x" + strings.Repeat("0", 63), "0x" + strings.Repeat("0", 65)} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("hash %q was taken", bad)
		}
	}
	if h, err := ParseHash("0x" + strings.Repeat("AB", 32)); err != nil || h[0] != 0xab {
		t.Errorf("upper-case digits are fine: %v", err)
	}
}

func TestIntentID(t *testing.T) {
	id, err := ParseIntentID("0x" + strings.Repeat("Ab", 16))
	if err != nil || id.IsZero() || id.String() != "0x"+strings.Repeat("ab", 16) {
		t.Errorf("%s: %v", id, err)
	}
	if !(IntentID{}).IsZero() {
		t.Error("the zero id is set")
	}
	for _, bad := range []string{"", "0x", strings.Repeat("ab", 16), "0X" + strings.Repeat("ab", 16), "0x" + strings.Repeat("ab", 15), "0x" + strings.Repeat("ab", 17), "0x" + strings.Repeat("zz", 16)} {
		if _, err := ParseIntentID(bad); err == nil {
			t.Errorf("intent id %q was taken", bad)
		}
	}
}

func hexOnly(s string) string { return strings.ReplaceAll(s, `0x`, `0X`) }

// The addresses are taken from EIP-55.
func TestParseAddress(t *testing.T) {
	for _, good := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
		"0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D", // all upper-case
		"0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26", // all lower-case
		"0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", "0x1234567890123456789012345678901234567890",
	} {
		if a, err := ParseAddress(good); err != nil || a.String() != strings.ToLower(good) {
			t.Errorf("%s: %s, %v", good, a, err)
		}
	}
	for _, bad := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed", // wrong case of one letter
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAee", // wrong digit
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeA", "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "",
	} {
		if a, err := ParseAddress(bad); err == nil || a != (Address{}) {
			t.Errorf("%s was taken as %s", bad, a)
		}
	}
}

func TestParseID(t *testing.T) {
	if id, err := ParseID("42431"); err != nil || id != 42431 {
		t.Errorf("%v, %v", id, err)
	}
	for _, bad := range []string{"", "0", "01", "-1", "+1", "1.0", "1e3", "0x1", "18446744073709551616"} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("chain id %q was taken", bad)
		}
	}
}

// The well-known Keccak-256 of the empty input.
func TestKeccak(t *testing.T) {
	h := Keccak()
	if got := hex.EncodeToString(h[:]); got != "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" {
		t.Error(got)
	}
}
