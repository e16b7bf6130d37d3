package keys

import "github.com/tempo-watchtower/watchtower/domain/event"

// The refusals of this package. Their texts contain nothing of a key except the address derived
// from it.
const (
	// ErrWrongKey: the signature was not made by the account's key.
	ErrWrongKey = event.Refusal("signer-wrong-key")
	// ErrUnknownKey: the remote signer does not hold the key.
	ErrUnknownKey = event.Refusal("signer-unknown-key")
	// ErrRejected: the remote signer refuses to sign this, or to sign for us.
	ErrRejected = event.Refusal("signer-rejected")
	// ErrBadPayload: the payload is empty or too large.
	ErrBadPayload = event.Refusal("signer-bad-payload")
	// ErrBadKey: a file, a variable or an answer holds no usable key.
	ErrBadKey = event.Refusal("signer-bad-key")
	// ErrUnlisted: a key's address is not among the allowed ones.
	ErrUnlisted = event.Refusal("signer-not-listed")
	// ErrNotDevelopment: keys in the environment are for development only.
	ErrNotDevelopment = event.Refusal("signer-not-development")
	// ErrBadSetting: a signer's settings are invalid.
	ErrBadSetting = event.Refusal("signer-bad-setting")
)
