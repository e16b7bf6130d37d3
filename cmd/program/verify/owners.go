package verify

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// shownOwner is a row of ownership.
type shownOwner struct {
	Position eventlog.Position `json:"position"`
	Sender   chain.Address     `json:"sender"`
	Group    *chain.GroupID    `json:"group_id"`
}

// owners compares the owners of transactions, and the claims of senders, with the folds of their
// streams.
func (r *run) owners(ctx context.Context, some []folded) error {
	owned, ownedThere, claimed, claimedThere := rows{}, rows{}, rows{}, rows{}
	hashes := make([][]byte, 0, len(some))
	streams := map[string]eventlog.Stream{}
	for _, f := range some {
		if f.broken {
			continue
		}
		hashes = append(hashes, f.Hash[:])
		name := key(f.Ref).String()
		streams[name] = f.stream
		if f.owned.Version == 0 || f.unowned {
			continue
		}
		for _, client := range f.owned.Clients() {
			owned[name+"/"+client] = row{f.stream, form(shownOwner{f.first, f.owned.Sender, f.owned.Group})}
		}
		if !f.owned.Claimed {
			owned[name+"/"+string(f.owned.Sender[:])] = row{f.stream, form(shownOwner{f.first, f.owned.Sender, f.owned.Group})}
		} else {
			claimed[name] = row{f.stream, form(f.first)}
		}
	}
	const owners = `SELECT chain, hash, owner, position, sender, group_id FROM ownership WHERE hash IN (KEYS)`
	err := r.query(ctx, owners, hashes, func(columns func(...any) error) error {
		var id, position int64
		var hash, owner, sender, group []byte
		if err := columns(&id, &hash, &owner, &position, &sender, &group); err != nil {
			return err
		}
		name := key{chain.ID(id), chain.Hash(hash)}.String()
		shown := shownOwner{Position: eventlog.Position(position)}
		copy(shown.Sender[:], sender)
		if group != nil {
			shown.Group = new(chain.GroupID)
			copy(shown.Group[:], group)
		}
		ownedThere[name+"/"+string(owner)] = row{streams[name], form(shown)}
		return nil
	})
	if err != nil {
		return err
	}
	r.drift(Owners, owned, ownedThere)
	const claims = `SELECT chain, hash, position FROM ownership_claims WHERE hash IN (KEYS)`
	err = r.query(ctx, claims, hashes, func(columns func(...any) error) error {
		var id, position int64
		var hash []byte
		if err := columns(&id, &hash, &position); err != nil {
			return err
		}
		name := key{chain.ID(id), chain.Hash(hash)}.String()
		claimedThere[name] = row{streams[name], form(eventlog.Position(position))}
		return nil
	})
	r.drift(Senders, claimed, claimedThere)
	return err
}
