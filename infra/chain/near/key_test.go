package near

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
)

// TestPostQuantum signs a transaction with an ML-DSA-65 key, for which the vectors' tools have none.
func TestPostQuantum(t *testing.T) {
	seed := sha256.Sum256([]byte("a key of a test"))
	public, private := mldsa65.NewKeyFromSeed(&seed)
	key := PublicKey{Type: MLDSA65, Bytes: string(public.Bytes())}
	s := Signed{Transaction: Transaction{Signer: "alice.near", Key: key, Nonce: Nonce{Value: 7}, Receiver: "bob.near", Actions: []Action{CreateAccount{}}}}
	hash := s.Hash()
	signature := make([]byte, mldsa65.SignatureSize)
	if err := mldsa65.SignTo(private, hash[:], nil, false, signature); err != nil {
		t.Fatal(err)
	}
	s.Signature = Signature{Type: MLDSA65, Bytes: signature}
	decoded, err := Decode(s.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := decoded.Validate(protocolV1); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := decoded.Validate(protocolV1 - 1); err == nil || !strings.Contains(err.Error(), "InvalidTransactionVersion") {
		t.Errorf("an earlier protocol says %v", err)
	}
	decoded.Signature.Bytes[100] ^= 1
	if err := decoded.Validate(protocolV1); err == nil || !strings.Contains(err.Error(), "InvalidSignature") {
		t.Errorf("with another signature: %v", err)
	}
	if text := key.String(); !strings.HasPrefix(text, "ml-dsa-65-hash:") {
		t.Errorf("shown as %s", text)
	}
}
