// Package near reads and writes NEAR's signed transactions, and judges them by the rules that a node
// applies before it looks at an account.
//
// A transaction names no chain: the hash of a recent block in it binds it to one. Its nonce belongs to one
// access key of the signer's account; a nonce that lands makes every lower one unusable. Sources are
// nearcore at commit f0c7706f (protocol version 86), near-account-id-rs and borsh-rs 1.5.3, by the names of
// their files.
package near

import "crypto/sha256"

// Version is the form of a transaction.
type Version byte

const (
	V0 Version = 0
	// V1 has a tag of its own; its nonce may be a gas key's, and may be strict.
	V1 Version = 1
)

// Transaction is what is signed (nearcore core/primitives/src/transaction.rs).
type Transaction struct {
	Version  Version
	Signer   string // the account that pays
	Key      PublicKey
	Nonce    Nonce // of V0: without an index
	Receiver string
	Block    [32]byte // a recent block's hash
	Actions  []Action
	// Strict, of V1 alone: the nonce must be the key's next one. Otherwise any higher one may land.
	Strict bool
}

// Signed is a transaction with its signature.
type Signed struct {
	Transaction
	Signature Signature
}

// Decode reads a signed transaction as strictly as a node does; its errors are a *[DecodeError]. What it
// accepts may still be refused: see [Signed.Validate]. Fields hold parts of raw.
func Decode(raw []byte) (Signed, error) {
	r := reader{rest: raw}
	s := Signed{Transaction: r.transaction()}
	s.Signature = r.signature()
	if r.err == nil && len(r.rest) > 0 {
		r.fail("Not all bytes read")
	}
	if r.err != nil {
		return Signed{}, r.err
	}
	return s, nil
}

func (r *reader) transaction() (t Transaction) {
	// A V0 begins with the length of a name, whose second byte is 0 in any name. So a second byte that
	// differs says that the first one is a tag.
	if len(r.rest) < 2 {
		r.fail("Unexpected length of input")
		return t
	}
	if r.rest[1] != 0 {
		if tag := r.u8(); tag != byte(V1) {
			r.fail("invalid transaction version tag: %d", tag)
			return t
		}
		t.Version = V1
	}
	t.Signer, t.Key = r.account(), r.publicKey()
	if t.Version == V1 {
		t.Nonce = r.nonce()
	} else {
		t.Nonce.Value = r.u64()
	}
	t.Receiver, t.Block, t.Actions = r.account(), r.hash(), list(r, (*reader).action)
	if t.Version == V1 {
		t.Strict = r.tag(2) == 1
	}
	return t
}

// Encode returns what is signed. For a decoded transaction these are the bytes that a node hashes: they
// differ from the ones read where a map was not in order.
func (t Transaction) Encode() []byte {
	var w writer
	if t.Version == V1 {
		w.u8(byte(V1))
	}
	w.text(t.Signer)
	w.publicKey(t.Key)
	if t.Version == V1 {
		t.Nonce.write(&w)
	} else {
		w.u64(t.Nonce.Value)
	}
	w.text(t.Receiver)
	w.raw(t.Block[:])
	writeActions(&w, t.Actions)
	switch {
	case t.Version == V1 && t.Strict:
		w.u8(1)
	case t.Version == V1:
		w.u8(0)
	}
	return w
}

// Hash identifies the transaction, and is what its key signs: the SHA-256 of [Transaction.Encode]. Two byte
// strings may have one hash: they differ in the signature, or in the order of a map.
func (t Transaction) Hash() [32]byte { return sha256.Sum256(t.Encode()) }

// Encode returns the bytes that a node takes.
func (s Signed) Encode() []byte {
	w := writer(s.Transaction.Encode())
	w.signature(s.Signature)
	return w
}
