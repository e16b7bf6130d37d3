package intents

import (
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// delivered is P23 for intents: an attempt of which an intent heard when it was to end
// already is handed to nobody. Whoever tells an intent of an attempt knows what stands in
// its stream before that.
func (j *Judge) delivered(r event.Recorded) {
	if r.Version != 1 || r.Meta.Actor != lane.Actor || !strings.HasPrefix(string(r.Stream), tx.StreamPrefix) {
		return
	}
	_, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return // package promise says so
	}
	if id, kept := j.kept[hash]; kept {
		j.broken(promise.P23, r, "it is delivered for %s, which was to end without effect when it was told of it", id)
	}
}
