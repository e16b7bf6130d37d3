package chain

import "fmt"

// AccessKey is a key that may sign in an account's name, if the account's
// AccountKeychain says so.
type AccessKey struct {
	Account, Key Address
}

// Grant is what the AccountKeychain says of an access key. The zero Grant is a key
// that it does not know.
type Grant struct {
	Known   bool
	Kind    SignatureKind // the only kind of signature it may make
	Expires uint64        // Unix seconds of block time: worthless from then on
	Revoked bool
}

// Doubt is why a signature of a kind, made with the key, does not bind the account
// at a block's time; empty when it does.
func (g Grant) Doubt(kind SignatureKind, time uint64) string {
	switch {
	case g.Revoked:
		return "the account has revoked the access key"
	case !g.Known:
		return "the account has not authorized the access key"
	case time >= g.Expires:
		return fmt.Sprintf("the access key's authorization expired at %d", g.Expires)
	case kind != g.Kind:
		return fmt.Sprintf("the access key is authorized to sign by %s, this signature is %s", g.Kind, kind)
	}
	return ""
}
