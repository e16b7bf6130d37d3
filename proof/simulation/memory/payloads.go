package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// kept is a payload's row and key.
type kept struct {
	payload.Sealed
	at time.Time
}

// Payloads are the store's sealed payloads.
type Payloads struct{ *Store }

// Payloads returns the store's sealed payloads.
func (s *Store) Payloads() Payloads { return Payloads{s} }

// Put stores rows. An existing row stays, and counts as stored now.
func (p Payloads) Put(ctx context.Context, sealed []payload.Sealed) error {
	return p.enter(ctx, func() {
		now := micro(p.now())
		for _, row := range sealed {
			if there, ok := p.payloads[row.Ref]; ok {
				row = there.Sealed
			} else {
				row.Wrapped, row.Bytes = slices.Clone(row.Wrapped), slices.Clone(row.Bytes)
			}
			p.payloads[row.Ref] = kept{row, now}
		}
	})
}

// Get finds a payload with its key.
func (p Payloads) Get(ctx context.Context, id chain.ID, hash chain.Hash) (s payload.Sealed, err error) {
	found := false
	err = p.enter(ctx, func() {
		var k kept
		if k, found = p.payloads[payload.Ref{Chain: id, Hash: hash}]; found {
			s = k.Sealed
			s.Wrapped, s.Bytes = slices.Clone(s.Wrapped), slices.Clone(s.Bytes)
		}
	})
	if err == nil && !found {
		err = payload.ErrGone
	}
	return s, err
}

// Erase removes rows with their keys.
func (p Payloads) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	return p.enter(ctx, func() {
		for _, hash := range hashes {
			p.erase(payload.Ref{Chain: id, Hash: hash})
		}
	})
}

func (d *data) erase(ref payload.Ref) {
	row := d.payloads[ref]
	clear(row.Wrapped) // so that nothing of it is left in memory
	clear(row.Bytes)
	delete(d.payloads, ref)
}

// EraseOrphan is Erase of one row, unless it was stored after a time.
func (p Payloads) EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error {
	return p.enter(ctx, func() {
		if row, ok := p.payloads[ref]; ok && row.at.Before(before) {
			p.erase(ref)
		}
	})
}

// Orphans lists payloads stored before a time, by chain and hash.
func (p Payloads) Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) (refs []payload.Ref, err error) {
	err = p.enter(ctx, func() {
		for ref, row := range p.payloads {
			if row.at.Before(before) && compareRefs(ref, after) > 0 {
				refs = append(refs, ref)
			}
		}
	})
	slices.SortFunc(refs, compareRefs)
	return refs[:min(len(refs), limit)], err
}

func compareRefs(a, b payload.Ref) int {
	return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Hash[:], b.Hash[:]))
}

// Medium returns every byte of every stored payload and key.
func (s *Store) Medium() (all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.payloads {
		all = append(all, row.Wrapped, row.Bytes)
	}
	return all
}
