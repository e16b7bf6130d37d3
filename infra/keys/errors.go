package keys

import "github.com/tempo-watchtower/watchtower/eventlog"

// The refusals of this package. Their texts contain nothing of a key except the address derived
// from it.
const (
	// ErrWrongKey: the signature was not made by the account's key.
	ErrWrongKey = eventlog.Refusal("signer-wrong-key")
	// ErrUnknownKey: the remote signer does not hold the key.
	ErrUnknownKey = eventlog.Refusal("signer-unknown-key")
	// ErrRejected: the remote signer refuses to sign this, or to sign for us.
	ErrRejected = eventlog.Refusal("signer-rejected")
	// ErrBadPayload: the payload is empty or too large.
	ErrBadPayload = eventlog.Refusal("signer-bad-payload")
	// ErrBadKey: a file, a variable or an answer holds no usable key.
	ErrBadKey = eventlog.Refusal("signer-bad-key")
	// ErrUnlisted: a key's address is not among the allowed ones.
	ErrUnlisted = eventlog.Refusal("signer-not-listed")
	// ErrNotDevelopment: keys in the environment are for development only.
	ErrNotDevelopment = eventlog.Refusal("signer-not-development")
	// ErrBadSetting: a signer's settings are invalid.
	ErrBadSetting = eventlog.Refusal("signer-bad-setting")
)
