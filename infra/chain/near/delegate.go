package near

import "crypto/sha256"

// Nonce is a transaction's or a delegate's nonce; a gas key has several sequences of nonces.
type Nonce struct {
	Value uint64
	Index *uint16 // of a gas key's sequence; nil for other keys
}

// The tags of a nonce in borsh.
const (
	nonceOfKey byte = iota
	nonceOfGasKey
	nonceKinds
)

func (r *reader) nonce() (n Nonce) {
	tag := r.tag(nonceKinds)
	n.Value = r.u64()
	if tag == nonceOfGasKey {
		index := r.u16()
		n.Index = &index
	}
	return n
}

func (n Nonce) write(w *writer) {
	if n.Index == nil {
		w.u8(nonceOfKey)
		w.u64(n.Value)
		return
	}
	w.u8(nonceOfGasKey)
	w.u64(n.Value)
	w.u16(*n.Index)
}

// Delegate is a meta transaction (NEP-366): actions that a user signed, and that the transaction's signer
// pays for. V2 makes it NEP-611's, whose nonce may be a gas key's.
type Delegate struct {
	V2        bool
	Sender    string
	Receiver  string
	Actions   []Action // no delegates
	Nonce     Nonce    // of V1: without an index
	MaxHeight uint64   // the last block's height in which it may run
	Key       PublicKey
	Signature Signature
}

// What a user signs begins with one of these numbers, so that no transaction can be taken for a delegate
// action (NEP-461): 2^30 + 366 and 2^30 + 611.
const (
	signableDelegate   = 1<<30 + 366
	signableDelegateV2 = 1<<30 + 611
)

// Hash is what the user signs.
func (d Delegate) Hash() [32]byte {
	var w writer
	if d.V2 {
		w.u32(signableDelegateV2)
	} else {
		w.u32(signableDelegate)
	}
	d.writeSigned(&w)
	return sha256.Sum256(w)
}

// Verified reports whether the user's signature is that of the user's key.
func (d Delegate) Verified() bool { return d.Key.Verify(d.Hash(), d.Signature) }

func (r *reader) delegate() Delegate {
	return Delegate{
		Sender: r.account(), Receiver: r.account(), Actions: list(r, (*reader).innerAction),
		Nonce: Nonce{Value: r.u64()}, MaxHeight: r.u64(), Key: r.publicKey(), Signature: r.signature(),
	}
}

func (r *reader) delegateV2() Delegate {
	r.tag(1) // the version of the payload, of which there is one
	return Delegate{
		V2: true, Sender: r.account(), Receiver: r.account(), Actions: list(r, (*reader).innerAction),
		Nonce: r.nonce(), MaxHeight: r.u64(), Key: r.publicKey(), Signature: r.signature(),
	}
}

func (d Delegate) write(w *writer) {
	if d.V2 {
		w.u8(tagDelegateV2)
	} else {
		w.u8(tagDelegate)
	}
	d.writeSigned(w)
	w.signature(d.Signature)
}

func (d Delegate) writeSigned(w *writer) {
	if d.V2 {
		w.u8(0)
	}
	w.text(d.Sender)
	w.text(d.Receiver)
	writeActions(w, d.Actions)
	if d.V2 {
		d.Nonce.write(w)
	} else {
		w.u64(d.Nonce.Value)
	}
	w.u64(d.MaxHeight)
	w.publicKey(d.Key)
}

func writeActions(w *writer, actions []Action) {
	writeList(w, actions, func(w *writer, a Action) { a.write(w) })
}
