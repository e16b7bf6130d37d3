package keys

import "github.com/tempo-watchtower/watchtower/domain/event"

// The refusals of this package. None of their sentences holds anything of a key
// but the address that follows from it.
const (
	// ErrWrongKey says that what came back was signed by another key than asked.
	ErrWrongKey = event.Refusal("signer-wrong-key")
	// ErrUnknownKey says that the remote signer does not hold the key.
	ErrUnknownKey = event.Refusal("signer-unknown-key")
	// ErrRejected says that the remote signer will not sign this, or not for us.
	ErrRejected = event.Refusal("signer-rejected")
	// ErrBadPayload says that there is nothing to sign, or too much.
	ErrBadPayload = event.Refusal("signer-bad-payload")
	// ErrBadKey says that a file, a variable or an answer holds no key that can be used.
	ErrBadKey = event.Refusal("signer-bad-key")
	// ErrUnlisted says that a key's address is not among those allowed.
	ErrUnlisted = event.Refusal("signer-not-listed")
	// ErrNotDevelopment says that keys in the environment are for development only.
	ErrNotDevelopment = event.Refusal("signer-not-development")
	// ErrBadSetting says that a signer cannot be reached in the way it is set up.
	ErrBadSetting = event.Refusal("signer-bad-setting")
)
