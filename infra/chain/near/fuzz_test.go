package near

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDecode checks that any bytes are refused with a DecodeError, or decode to a transaction whose encoding
// decodes to the same: one hash, one encoding. Validation of whatever decodes ends with a reason or none.
func FuzzDecode(f *testing.F) {
	all := readVectors(f)
	for _, v := range append(all.Vectors, all.Malformed...) {
		if v.Template == nil {
			f.Add(v.bytes(f))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Decode(raw)
		if err != nil {
			if refusal := (*DecodeError)(nil); !errors.As(err, &refusal) || refusal.Text == "" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		encoded := s.Encode()
		again, err := Decode(encoded)
		if err != nil {
			t.Fatalf("the encoding does not decode: %v", err)
		}
		if s.Hash() != again.Hash() || !bytes.Equal(encoded, again.Encode()) {
			t.Fatal("the encoding decodes to another transaction")
		}
		if len(encoded) > len(raw) {
			t.Fatalf("%d bytes encode to %d", len(raw), len(encoded))
		}
		err, second := s.Validate(protocolV1), again.Validate(protocolV1)
		if (err == nil) != (second == nil) {
			t.Fatalf("validates with %v, and its encoding with %v", err, second)
		}
		s.ShowActions()
	})
}
