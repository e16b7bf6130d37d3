package cli

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Listen is the command "listen".
func Listen() *cobra.Command {
	return remote.Listen(front, "relayer", map[string]string{
		"intent": "only events of this `intent`",
		"client": "only events of this `client`'s intents; needs the scope admin or audit",
	}, webhookPosting)
}

// position is the member that the stream adds to the body of a webhook, as its first.
var position = regexp.MustCompile(`^\{"position":[0-9]+,`)

// webhookPosting is an event of the stream as a webhook posts it: without its position.
func webhookPosting(line []byte) (remote.Posting, error) {
	var e struct {
		Position uint64
		Intent   chain.IntentID
		Sequence uint64
		Type     string
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return remote.Posting{}, err
	}
	if e.Type == "" {
		return remote.Posting{Position: e.Position}, nil
	}
	if !position.Match(line) {
		return remote.Posting{}, fmt.Errorf("event %d of intent %s does not begin with its position", e.Sequence, e.Intent)
	}
	key := notice.Key{Intent: e.Intent, Seq: e.Sequence}
	return remote.Posting{ID: key.MessageID(), Name: e.Type, Position: e.Position, Body: position.ReplaceAll(line, []byte("{"))}, nil
}
