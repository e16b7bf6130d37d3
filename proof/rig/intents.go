package rig

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// IntentStatus asks a relayer for an intent's status.
func IntentStatus(ctx context.Context, url string, id chain.IntentID) (intent.Status, error) {
	var shown struct{ Status intent.Status }
	_, err := getJSON(ctx, url+"/v1/intents/"+id.String(), &shown)
	return shown.Status, err
}
