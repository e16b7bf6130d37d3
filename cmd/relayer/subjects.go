package main

import (
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// subjects reads the relayer's own forms of an audit's subjects: an intent's id, and
// CHAIN/SIGNER[/NONCEKEY] of a lane, whose nonce key is 0 by default.
func subjects(text string) (name eventlog.Stream, what string, is bool) {
	if id, err := chain.ParseIntentID(text); err == nil {
		return intent.Stream(id), "intent " + text, true
	}
	parts := strings.Split(text, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return "", "", false
	}
	var of chain.Sequence
	var err error
	if of.Chain, err = chain.ParseID(parts[0]); err != nil {
		return "", "", false
	}
	if of.Sender, err = chain.ParseAddress(parts[1]); err != nil {
		return "", "", false
	}
	if len(parts) == 3 {
		if of.Key, err = chain.ParseNonceKey(parts[2]); err != nil {
			return "", "", false
		}
	}
	return lane.Stream(of), fmt.Sprintf("the lane of %s on chain %s under the nonce key %s", of.Sender, of.Chain, of.Key), true
}
