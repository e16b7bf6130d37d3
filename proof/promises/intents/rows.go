package intents

import (
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// rowOf returns an intent's ordering group; its Order is empty without a group.
func rowOf(l *life) intent.Row { return l.request.Request.Waiting(0).Row }

// inRow checks P35 when an intent gets a nonce: every earlier intent of its ordering group that
// has not ended has a lower nonce in the same lane.
//
// Exempt are earlier intents that are to end without effect or have lost a place, other than by a
// release. An intent with such a loss is itself placed behind later ones. Also exempt are intents
// whose end was withdrawn by a reorg: later intents had continued before, in any lane.
func (j *Judge) inRow(l *life, r eventlog.Recorded, at intent.Place) {
	row := rowOf(l)
	if row.Order == "" || l.moved {
		return
	}
	for _, before := range j.rows[row] {
		if before == l {
			return
		}
		if before.view.End != "" || before.toEnd || before.moved || before.back {
			continue
		}
		j.cases.Add(promises.P35)
		switch was := before.place; {
		case was == nil:
			j.broken(promises.P35, r, "it gets nonce %d, but %s, earlier in ordering group %q, has none", at.Nonce, before.id, row.Order)
		case was.Signer != at.Signer || was.NonceKey != at.NonceKey:
			j.broken(promises.P35, r, "it gets nonce %d of %s under key %s, but %s, earlier in ordering group %q, has nonce %d of %s under key %s",
				at.Nonce, at.Signer, at.NonceKey, before.id, row.Order, was.Nonce, was.Signer, was.NonceKey)
		case was.Nonce >= at.Nonce:
			j.broken(promises.P35, r, "it gets nonce %d, but %s, earlier in ordering group %q, has nonce %d", at.Nonce, before.id, row.Order, was.Nonce)
		}
	}
}
