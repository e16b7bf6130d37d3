package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// shownClaim is a row of group_claims.
type shownClaim struct {
	Chain     chain.ID          `json:"chain"`
	Sender    chain.Address     `json:"sender"`
	AccessKey chain.Address     `json:"access_key"`
	Position  eventlog.Position `json:"position"`
}

// claims compares group claims with the folds of the transactions that make them.
func (r *run) claims(ctx context.Context, some []folded) error {
	want, got := rows{}, rows{}
	hashes := make([][]byte, 0, len(some))
	streams := map[string]eventlog.Stream{}
	for _, f := range some {
		if f.broken {
			continue
		}
		hashes = append(hashes, f.Hash[:])
		streams[f.Hash.String()] = f.stream
		s := f.grouped
		ended := s.Sealed && s.Verdict != tx.StatusExecuted
		if s.Status == tx.StatusAbsent || !s.Claimed() || s.Canceled || s.Retired || ended {
			continue
		}
		a := s.Accepted
		want[f.Hash.String()] = row{f.stream, form(shownClaim{a.Chain, a.Sender, *a.AccessKey, f.first})}
	}
	const text = `SELECT hash, chain, sender, access_key, position FROM group_claims WHERE hash IN (KEYS)`
	err := r.query(ctx, text, hashes, func(columns func(...any) error) error {
		var id, position int64
		var hash, sender, key []byte
		if err := columns(&hash, &id, &sender, &key, &position); err != nil {
			return err
		}
		name := chain.Hash(hash).String()
		c := shownClaim{Chain: chain.ID(id), Position: eventlog.Position(position)}
		copy(c.Sender[:], sender)
		copy(c.AccessKey[:], key)
		got[name] = row{streams[name], form(c)}
		return nil
	})
	r.drift(Claims, want, got)
	return err
}

// shownMember is a row of group_members.
type shownMember struct {
	Chain      chain.ID          `json:"chain"`
	Sender     chain.Address     `json:"sender"`
	Group      chain.GroupID     `json:"group_id"`
	NonceKey   chain.NonceKey    `json:"nonce_key"`
	Nonce      uint64            `json:"nonce"`
	EligibleAt uint64            `json:"eligible_at"`
	Position   eventlog.Position `json:"position"`
}

// shownGroup is a row of groups.
type shownGroup struct {
	NonceKey chain.NonceKey    `json:"nonce_key"`
	Position eventlog.Position `json:"position"`
	EndAt    uint64            `json:"end_at"`
}

// groups compares members and groups with the groups' streams, one group at a time.
func (r *run) groups(ctx context.Context) error {
	done, next := uint64(0), int64(0)
	for {
		names, last, err := r.Log.Names(ctx, group.StreamPrefix, next, pageMost)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		next = last
		for _, name := range names {
			id, err := group.ParseStream(name)
			if err != nil {
				continue // log has reported it
			}
			if err := r.group(ctx, name, id); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		done += uint64(len(names))
		r.Progress("groups", done, 0)
	}
}

func (r *run) group(ctx context.Context, name eventlog.Stream, id group.ID) error {
	codec := group.Codec()
	want := shownGroup{}
	after := eventlog.Version(0)
	for {
		page, err := r.Log.Stream(ctx, name, after, pageMost)
		if err != nil {
			return err
		}
		var joined []shownJoined
		for _, e := range page {
			after = e.Version
			fact, err := codec.Decode(e.Name, e.Data)
			if err != nil {
				return nil //nolint:nilerr // the check of the log has reported it; its consequences cannot be checked
			}
			if j, yes := fact.(group.Joined); yes && e.Position <= r.at.groups {
				joined = append(joined, shownJoined{j.Hash, shownMember{j.Chain, j.Sender, j.Group, j.NonceKey, j.Nonce, j.EligibleAt, e.Position}})
			}
		}
		if joined, err = r.members(ctx, name, joined); err != nil {
			return err
		}
		for _, m := range joined {
			if want.Position == 0 {
				want.NonceKey, want.Position = m.NonceKey, m.Position
			}
			want.EndAt = max(want.EndAt, m.EligibleAt)
		}
		if len(page) < pageMost {
			return r.summary(ctx, name, id, want)
		}
	}
}

type shownJoined struct {
	hash chain.Hash
	shownMember
}

// members compares the rows of some members, and returns the members that should exist. Retired
// transactions are no longer members.
func (r *run) members(ctx context.Context, name eventlog.Stream, joined []shownJoined) ([]shownJoined, error) {
	if len(joined) == 0 {
		return nil, nil
	}
	streams := make([]eventlog.Stream, len(joined))
	hashes := make([][]byte, len(joined))
	for i, m := range joined {
		streams[i], hashes[i] = tx.Stream(m.Chain, m.hash), m.hash[:]
	}
	lives, err := r.Log.Streams(ctx, streams)
	if err != nil {
		return nil, err
	}
	want, got := rows{}, rows{}
	joined = slices.DeleteFunc(joined, func(m shownJoined) bool {
		gone := slices.ContainsFunc(lives[tx.Stream(m.Chain, m.hash)], func(e eventlog.Recorded) bool {
			return e.Name == "tx.retired.v1" && e.Position > m.Position && e.Position <= r.at.groups
		})
		if !gone {
			want[m.hash.String()] = row{name, form(m.shownMember)}
		}
		return gone
	})
	const text = `SELECT hash, chain, sender, group_id, nonce_key, nonce, eligible_at, position FROM group_members WHERE hash IN (KEYS)`
	err = r.query(ctx, text, hashes, func(columns func(...any) error) error {
		var id, nonce, eligible, position int64
		var hash, sender, groupID, nonceKey []byte
		if err := columns(&hash, &id, &sender, &groupID, &nonceKey, &nonce, &eligible, &position); err != nil {
			return err
		}
		m := shownMember{Chain: chain.ID(id), Nonce: unordered(nonce), EligibleAt: unordered(eligible), Position: eventlog.Position(position)}
		copy(m.Sender[:], sender)
		copy(m.Group[:], groupID)
		copy(m.NonceKey[:], nonceKey)
		got[chain.Hash(hash).String()] = row{name, form(m)}
		return nil
	})
	r.drift(Members, want, got)
	return joined, err
}

// summary compares a group's own row. A group without members has none.
func (r *run) summary(ctx context.Context, name eventlog.Stream, id group.ID, should shownGroup) error {
	want, got := rows{}, rows{}
	if should.Position != 0 {
		want[string(name)] = row{name, form(should)}
	}
	const text = `SELECT nonce_key, position, end_at FROM groups WHERE sender = $1 AND group_id = $2 AND chain = $3`
	err := r.one(ctx, text, []any{id.Sender[:], id.Group[:], int64(id.Chain)}, func(columns func(...any) error) error {
		var position, end int64
		var key []byte
		if err := columns(&key, &position, &end); err != nil {
			return err
		}
		g := shownGroup{Position: eventlog.Position(position), EndAt: unordered(end)}
		copy(g.NonceKey[:], key)
		got[string(name)] = row{name, form(g)}
		return nil
	})
	r.drift(Groups, want, got)
	return err
}

// unordered converts a stored number back to the unsigned number it encodes.
func unordered(n int64) uint64 { return uint64(n) ^ 1<<63 }
