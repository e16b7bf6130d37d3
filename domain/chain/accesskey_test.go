package chain

import "testing"

func TestGrant(t *testing.T) {
	good := Grant{Known: true, Kind: P256, Expires: 100}
	revoked := good
	revoked.Revoked = true
	for _, c := range []struct {
		name  string
		grant Grant
		kind  SignatureKind
		time  uint64
		doubt string
	}{
		{"granted", good, P256, 99, ""},
		{"unknown", Grant{}, P256, 99, "the account has not authorized the access key"},
		{"revoked", revoked, P256, 99, "the account has revoked the access key"},
		{"revoked, and nothing else is left of it", Grant{Revoked: true}, P256, 99, "the account has revoked the access key"},
		{"expired", good, P256, 100, "the access key's authorization expired at 100"},
		{"another kind", good, WebAuthn, 99, "the access key is authorized to sign by p256, this signature is webauthn"},
		{"for ever", Grant{Known: true, Kind: Secp256k1, Expires: 1<<64 - 1}, Secp256k1, 1 << 62, ""},
	} {
		if got := c.grant.Doubt(c.kind, c.time); got != c.doubt {
			t.Errorf("%s: %q, want %q", c.name, got, c.doubt)
		}
	}
}
