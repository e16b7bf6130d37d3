package chain

import "fmt"

// AccessKey is a key that may sign for an account if the account's AccountKeychain authorizes it.
type AccessKey struct {
	Account, Key Address
}

// Grant is the AccountKeychain's entry for an access key. The zero Grant is an unknown key.
type Grant struct {
	Known   bool
	Kind    SignatureKind // the only kind of signature that it may make
	Expires uint64        // Unix seconds of block time: invalid from then on
	Revoked bool
}

// Doubt returns why a signature of this kind by the key does not bind the account at a block's
// time; empty if it does.
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
