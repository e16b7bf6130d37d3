package intent

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Effect returns the part of a request that says what happens on the chain: client, signer or pool,
// chain, calls and nonce key. Gas, fees and the fee token are left out. Wallets estimate these anew
// when they repeat a request, and a payment must not be made twice because its fee has changed.
func (r Request) Effect() Request {
	return Request{Client: r.Client, From: r.From, Chain: r.Chain, Calls: r.Calls, NonceKey: r.NonceKey}
}

// FirstHash returns the hash of the first attempt of the intent's calls, and when it was recorded; ok is
// false if there was none. A no-op is no attempt of the calls.
func (s State) FirstHash() (hash chain.Hash, at time.Time, ok bool) {
	for _, a := range s.Attempts {
		if a.Kind != NoOp {
			return a.Hash, a.At, true
		}
	}
	return chain.Hash{}, time.Time{}, false
}

// TakesRepeats reports whether a request of the same effect, without a key of its own, repeats this
// intent at a time. It does until the window is over, which begins with the first hash: a client that
// got no hash can only be repeating its request, however long that takes. The window of an intent
// that ended without a hash begins with its request.
func (s State) TakesRepeats(now time.Time, window time.Duration) bool {
	_, since, made := s.FirstHash()
	switch {
	case made:
	case s.End == nil:
		return true
	default:
		since = s.Requested.At
	}
	return now.Sub(since) < window
}
