package near

import "testing"

func TestCheckAccount(t *testing.T) {
	for name, valid := range map[string]bool{
		"ab": true, "a.b": true, "0s00": true, "a-b_c.d": true, "100": true,
		"a": false, "": false, "A.near": false, "a..b": false, ".ab": false, "ab-": false, "a b": false, "aé": false, "a@b": false,
	} {
		if err := CheckAccount(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestInvalidUTF8 holds lengths of invalid sequences against what Rust's from_utf8 reports for them.
func TestInvalidUTF8(t *testing.T) {
	for _, test := range []struct {
		bytes      string
		at, length int
		valid      bool
	}{
		{"abc", 0, 0, true},
		{"é€😀", 0, 0, true},
		{"ab\xff", 2, 1, false},
		{"ab\xe2\x82", 2, 0, false},       // may go on
		{"ab\xe2\x82c", 2, 2, false},      // two bytes of three
		{"\xf0\x9f\x98c", 0, 3, false},    // three bytes of four
		{"\xe0\x80\x80", 0, 1, false},     // too long for its value
		{"\xed\xa0\x80", 0, 1, false},     // a surrogate
		{"\xf4\x90\x80\x80", 0, 1, false}, // beyond Unicode
		{"a\xc3", 1, 0, false},
	} {
		at, length, valid := invalidUTF8([]byte(test.bytes))
		if at != test.at || length != test.length || valid != test.valid {
			t.Errorf("%q: got %d, %d, %t", test.bytes, at, length, valid)
		}
	}
}

func TestParsePublicKey(t *testing.T) {
	for _, v := range readVectors(t).Vectors {
		if v.KeyType == "ml-dsa-65" {
			continue
		}
		key, err := ParsePublicKey(v.Key)
		if err != nil || key.String() != v.Key {
			t.Fatalf("%s: got %s, error %v", v.Key, key, err)
		}
	}
	for _, text := range []string{"", "ed25519:", "ed25519:0", "rsa:3yZe7d", "secp256k1:BFXJ2rpUBMtERpiDqba8Q5bSEyabhAbjd7bGAkXGnKuz"} {
		if key, err := ParsePublicKey(text); err == nil {
			t.Errorf("%q is the key %s", text, key)
		}
	}
}
