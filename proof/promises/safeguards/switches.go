package safeguards

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// ofSwitches follows the halts. P32: each has an actor.
func (j *Judge) ofSwitches(r eventlog.Recorded) error {
	e, err := j.halts.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	actor := ""
	switch e := e.(type) {
	case safeguard.Halted:
		j.halted[e.Scope] = since(j.halted[e.Scope], true, r.At)
		actor = e.Actor
	case safeguard.Resumed:
		j.lasted(promises.P32, j.halted[e.Scope], r.At)
		delete(j.halted, e.Scope)
		actor = e.Actor
	case safeguard.TargetsSet:
		actor = e.Actor
	case safeguard.RateSet:
		actor = e.Actor
	}
	if actor == "" {
		j.broken(promises.P32, r, "%s without an actor", r.Name)
	}
	return nil
}

// signsFor checks P23 for intents: no attempt is signed for an intent that is to end without
// effect. It also checks P32: no attempt is signed for a halted client. A no-op belongs to no
// client.
func (j *Judge) signsFor(r eventlog.Recorded, on chain.ID, e lane.Attempted) {
	was, ends := j.ending[e.Intent]
	if ends {
		j.cases.Add(promises.P23)
	}
	if j.over(was, r.At) {
		j.broken(promises.P23, r, "%s is signed for %s, which is being canceled since %s", e.Hash, e.Intent, was.UTC().Format(time.RFC3339))
	}
	scopes := []safeguard.Scope{{Kind: safeguard.Deployment}, {Kind: safeguard.OnChain, Chain: on}}
	if client, known := j.clients[e.Intent]; known {
		scopes = append(scopes, safeguard.Scope{Kind: safeguard.OfClient, Client: client},
			safeguard.Scope{Kind: safeguard.OfClient, Client: client, Chain: on})
	}
	for _, scope := range scopes {
		if was := j.halted[scope]; j.over(was, r.At) {
			j.broken(promises.P32, r, "%s is signed, and the %s is halted since %s", e.Hash, scope, was.UTC().Format(time.RFC3339))
			return
		}
	}
}
