package verify

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// extras finds rows of transactions that the log does not contain. The walk over the log's
// streams does not reach them.
func (r *run) extras(ctx context.Context) error {
	if err := r.strangers(ctx, r.Work.Queued, func(refs []payload.Ref) { r.extra(Queue, refs) }); err != nil {
		return err
	}
	err := r.strangers(ctx, r.Log.Kept, func(refs []payload.Ref) {
		// An interrupted submission; the service erases the bytes later.
		r.report.Payloads.Orphans += uint64(len(refs))
	})
	if err != nil {
		return err
	}
	for _, table := range []string{Transactions, Members, Claims, Owners, Senders} {
		if err := r.strangers(ctx, r.listed(table), func(refs []payload.Ref) { r.extra(table, refs) }); err != nil {
			return err
		}
	}
	return r.unaccounted(ctx)
}

// extra records rows that should not exist.
func (r *run) extra(table string, refs []payload.Ref) {
	got := rows{}
	for _, ref := range refs {
		got[key(ref).String()] = row{tx.Stream(ref.Chain, ref.Hash), []byte(`"there"`)}
	}
	r.drift(table, rows{}, got)
}

// listed lists a table of the read models, in pages.
func (r *run) listed(table string) func(context.Context, payload.Ref, int) ([]payload.Ref, error) {
	return func(ctx context.Context, after payload.Ref, most int) (refs []payload.Ref, err error) {
		text := fmt.Sprintf(`SELECT chain, hash FROM %s WHERE hash > $1 ORDER BY hash LIMIT %d`, table, most)
		err = r.one(ctx, text, []any{after.Hash[:]}, func(columns func(...any) error) error {
			var id int64
			var hash []byte
			if err := columns(&id, &hash); err != nil {
				return err
			}
			ref := payload.Ref{Chain: chain.ID(id)}
			copy(ref.Hash[:], hash)
			refs = append(refs, ref)
			return nil
		})
		return refs, err
	}
}

// strangers walks a list and calls tell with the entries that the log does not contain.
func (r *run) strangers(ctx context.Context, list func(context.Context, payload.Ref, int) ([]payload.Ref, error), tell func([]payload.Ref)) error {
	for after := (payload.Ref{}); ; {
		refs, err := list(ctx, after, pageMost)
		if err != nil || len(refs) == 0 {
			return err
		}
		after = refs[len(refs)-1]
		names := make([]eventlog.Stream, len(refs))
		for i, ref := range refs {
			names[i] = tx.Stream(ref.Chain, ref.Hash)
		}
		known, err := r.Log.Known(ctx, names)
		if err != nil {
			return err
		}
		var unknown []payload.Ref
		for i, ref := range refs {
			if !known[names[i]] {
				unknown = append(unknown, ref)
			}
		}
		if len(unknown) > 0 {
			tell(unknown)
		}
	}
}

// unaccounted counts surplus rows in the group tables: rows of known transactions, or of groups
// without members.
func (r *run) unaccounted(ctx context.Context) error {
	for _, table := range []string{Members, Groups} {
		var there uint64
		err := r.one(ctx, `SELECT count(*) FROM `+table, nil, func(columns func(...any) error) error { return columns(&there) })
		if err != nil {
			return err
		}
		d := r.report.Drift[table]
		if should := d.Rows - d.Missing + d.Extra; there > should {
			d.Extra += there - should
			r.report.Drift[table] = d
			r.broken(promises.Violation{Promise: promises.P18, Evidence: fmt.Sprintf("%s has %d rows without an event", table, there-should)})
		}
	}
	return nil
}
