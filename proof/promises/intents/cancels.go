package intents

import (
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// delivered checks P23 for intents: an attempt that an intent recorded when it was already to end
// is not delivered. The relay knows the intent's stream up to the attempt, so it knows about the
// end.
func (j *Judge) delivered(r eventlog.Recorded) {
	if r.Version != 1 || r.Meta.Actor != lane.Actor || !strings.HasPrefix(string(r.Stream), tx.StreamPrefix) {
		return
	}
	_, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return // package promise reports it
	}
	if id, kept := j.kept[hash]; kept {
		j.broken(promises.P23, r, "it is delivered for %s, which was already being canceled when it was signed", id)
	}
}
