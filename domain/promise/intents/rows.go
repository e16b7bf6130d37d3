package intents

import (
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/promise"
)

// rowOf is the row that an intent stands in; its Order is empty when it stands in none.
func rowOf(l *life) intent.Row { return l.request.Request.Waiting(0).Row }

// inRow is P35, when an intent gets a nonce: whatever was asked for before it in its row,
// and has not ended, has a lower one in the same lane. Of what is to end without effect,
// and of what has lost its nonce to somebody else, nothing is expected; what such a loss
// has moved itself stands behind those that follow it. Nor is anything expected of what
// had come out before its block left the chain: then those behind it went on, in whatever
// lane.
func (j *Judge) inRow(l *life, r event.Recorded, at intent.Place) {
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
		j.cases.Add(promise.P35)
		switch was := before.place; {
		case was == nil:
			j.broken(promise.P35, r, "it gets nonce %d, and %s, which stands before it in row %q, has none", at.Nonce, before.id, row.Order)
		case was.Signer != at.Signer || was.NonceKey != at.NonceKey:
			j.broken(promise.P35, r, "it gets nonce %d of %s under key %s, and %s, before it in row %q, has nonce %d of %s under key %s",
				at.Nonce, at.Signer, at.NonceKey, before.id, row.Order, was.Nonce, was.Signer, was.NonceKey)
		case was.Nonce >= at.Nonce:
			j.broken(promise.P35, r, "it gets nonce %d, and %s, before it in row %q, has nonce %d", at.Nonce, before.id, row.Order, was.Nonce)
		}
	}
}
