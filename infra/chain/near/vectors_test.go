package near

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectors are signed transactions made by near-api-js 7.3.1, by near-kit 0.19.0 where the former lacks a
// type, and by nearcore's own tests and documents; "about" in the file says how.
type vectors struct {
	Vectors   []vector
	Malformed []vector
	Foreign   []vector
}

type vector struct {
	Name     string
	Stage    string
	Base64   string `json:"borsh_base64"`
	Hex      string `json:"borsh_hex"`
	Template *struct {
		Prefix string `json:"prefix_hex"`
		Fill   string `json:"fill_hex"`
		Count  int    `json:"fill_count"`
		Suffix string `json:"suffix_hex"`
	} `json:"borsh_template"`
	Length            int
	TransactionLength int    `json:"transaction_length"`
	Sum               string `json:"sha256_of_bytes"`

	Version   Version
	Hash      string `json:"hash_base58"`
	Signer    string `json:"signer_id"`
	Key       string `json:"public_key"`
	KeyType   string `json:"key_type"`
	Nonce     string
	Index     *uint16 `json:"nonce_index"`
	Mode      string  `json:"nonce_mode"`
	Receiver  string  `json:"receiver_id"`
	Block     string  `json:"block_hash"`
	Actions   json.RawMessage
	Signature string

	Canonical      *bool
	Protocol       any     `json:"protocol_version"`
	DelegateHash   string  `json:"delegate_hash_hex"`
	InnerValid     *bool   `json:"inner_signature_valid"`
	SignatureValid *bool   `json:"signature_valid"`
	Action         *string `json:"action_hex"`

	NodeSays struct {
		Borsh   string          `json:"borsh_error"`
		Invalid json.RawMessage `json:"InvalidTxError"`
	} `json:"node_says"`
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	file, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Vectors) != 68 || len(v.Malformed) != 50 || len(v.Foreign) != 3 {
		t.Fatalf("the file has %d, %d and %d vectors", len(v.Vectors), len(v.Malformed), len(v.Foreign))
	}
	return v
}

func (v vector) bytes(t testing.TB) []byte {
	t.Helper()
	var raw []byte
	switch {
	case v.Template != nil:
		fill := bytes.Repeat(unhex(t, v.Template.Fill), v.Template.Count)
		raw = slices.Concat(unhex(t, v.Template.Prefix), fill, unhex(t, v.Template.Suffix))
	case v.Hex != "":
		raw = unhex(t, v.Hex)
	default:
		var err error
		if raw, err = base64.StdEncoding.DecodeString(v.Base64); err != nil {
			t.Fatal(err)
		}
	}
	if sum := sha256.Sum256(raw); v.Sum != "" && hex.EncodeToString(sum[:]) != v.Sum {
		t.Fatalf("the bytes of %s have another hash than the file says", v.Name)
	}
	return raw
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVectors decodes every transaction, and compares each field, the hash and the encoding.
func TestVectors(t *testing.T) {
	for _, v := range readVectors(t).Vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := v.bytes(t)
			s, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			got := vector{
				Version: s.Version, Hash: HashText(s.Hash()), Signer: s.Signer, Key: s.Key.String(), KeyType: s.Key.Type.String(),
				Nonce: decimal(s.Nonce.Value), Index: s.Nonce.Index, Receiver: s.Receiver, Block: HashText(s.Block),
				Signature: s.Signature.String(), Length: len(raw), TransactionLength: len(s.Transaction.Encode()),
			}
			switch {
			case s.Version == V1 && s.Strict:
				got.Mode = "strict"
			case s.Version == V1:
				got.Mode = "monotonic"
			}
			want := vector{
				Version: v.Version, Hash: v.Hash, Signer: v.Signer, Key: v.Key, KeyType: v.KeyType,
				Nonce: v.Nonce, Index: v.Index, Receiver: v.Receiver, Block: v.Block,
				Signature: v.Signature, Length: v.Length, TransactionLength: v.TransactionLength, Mode: v.Mode,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			sameJSON(t, v.Actions, s.ShowActions())
			if err := s.Validate(protocolV1); err != nil {
				t.Errorf("refused: %v", err)
			}
			canonical := v.Canonical == nil || *v.Canonical
			if same := bytes.Equal(s.Encode(), raw); same != canonical {
				t.Errorf("encodes to the same bytes: %t, but canonical: %t", same, canonical)
			}
			checkDelegate(t, v, s)
		})
	}
}

func checkDelegate(t *testing.T, v vector, s Signed) {
	t.Helper()
	if v.DelegateHash == "" {
		return
	}
	at := slices.IndexFunc(s.Actions, func(a Action) bool { _, is := a.(Delegate); return is })
	delegate := s.Actions[at].(Delegate)
	if hash := delegate.Hash(); hex.EncodeToString(hash[:]) != v.DelegateHash {
		t.Errorf("the delegate's hash is %x, want %s", hash, v.DelegateHash)
	}
	if want := v.InnerValid == nil || *v.InnerValid; delegate.Verified() != want {
		t.Errorf("the delegate's signature is valid: %t", !want)
	}
}

// TestMalformed holds refusals against what a node says.
func TestMalformed(t *testing.T) {
	for _, v := range readVectors(t).Malformed {
		t.Run(v.Name, func(t *testing.T) {
			s, err := Decode(v.bytes(t))
			if v.Stage == "parse" {
				if err == nil || err.Error() != v.NodeSays.Borsh {
					t.Fatalf("got error %v, want %s", err, v.NodeSays.Borsh)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			protocol := uint32(protocolV1)
			if v.Name == "v1_before_86" {
				protocol = 84
			}
			err = s.Validate(protocol)
			if err == nil {
				t.Fatal("accepted")
			}
			sameJSON(t, v.NodeSays.Invalid, err)
		})
	}
}

// TestForeign reads what others published.
func TestForeign(t *testing.T) {
	for _, v := range readVectors(t).Foreign {
		t.Run(v.Name, func(t *testing.T) {
			if v.Action != nil {
				raw := unhex(t, *v.Action)
				r := reader{rest: raw}
				action := r.action()
				if r.err != nil || len(r.rest) > 0 {
					t.Fatalf("error %v, %d bytes left", r.err, len(r.rest))
				}
				var w writer
				action.write(&w)
				if !bytes.Equal(w, raw) {
					t.Errorf("encodes to %x", []byte(w))
				}
				return
			}
			s, err := Decode(v.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := HashText(s.Hash()); got != v.Hash {
				t.Errorf("hash %s, want %s", got, v.Hash)
			}
			if got := s.Key.Verify(s.Hash(), s.Signature); got != *v.SignatureValid {
				t.Errorf("the signature is valid: %t", got)
			}
		})
	}
}

// sameJSON compares values as JSON.
func sameJSON(t *testing.T, want json.RawMessage, got any) {
	t.Helper()
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var wanted, gotten any
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &gotten); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, gotten); diff != "" {
		t.Error(diff)
	}
}
