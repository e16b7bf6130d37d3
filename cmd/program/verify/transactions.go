package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// folded is a transaction folded from its events, at the checkpoint of each read model and at
// the end of the log.
type folded struct {
	payload.Ref
	stream  eventlog.Stream
	row     transactions.Row // at the checkpoint of the transactions read model
	queued  tx.State         // at the checkpoint of the due queue
	grouped tx.State         // at the checkpoint of the groups read model
	owned   owners.Ownership // at the checkpoint of the owners read model
	unowned bool             // it was retired at that checkpoint
	now     tx.State
	first   eventlog.Position // of its acceptance
	sealed  *tx.Finalized
	last    time.Time // of its last event
	broken  bool      // it cannot be folded; log has reported it
}

// transactions compares rows, queue and signed bytes with the streams, a few hundred at a time.
func (r *run) transactions(ctx context.Context) error {
	codec := tx.Codec()
	done, next := uint64(0), int64(0)
	for {
		names, last, err := r.Log.Names(ctx, tx.StreamPrefix, next, pageMost)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
		next = last
		streams, err := r.Log.Streams(ctx, names)
		if err != nil {
			return err
		}
		some := make([]folded, 0, len(names))
		for _, name := range names {
			if f, ok := r.fold(codec, name, streams[name]); ok {
				some = append(some, f)
			}
		}
		for _, check := range []func(context.Context, []folded) error{r.rows, r.owners, r.claims, r.queue, r.payloads, r.verdicts} {
			if err := check(ctx, some); err != nil {
				return err
			}
		}
		done += uint64(len(names))
		r.Progress("transactions", done, r.report.Log.Transactions)
	}
	return nil
}

// fold folds a stream. A stream whose name or events cannot be read was reported by log; its
// rows cannot be checked.
func (r *run) fold(codec eventlog.Codec[tx.Event], name eventlog.Stream, events []eventlog.Recorded) (f folded, ok bool) {
	id, hash, err := tx.ParseStream(name)
	if err != nil || len(events) == 0 {
		return f, false
	}
	f.Ref, f.stream = payload.Ref{Chain: id, Hash: hash}, name
	for i, e := range events {
		if e.Position > r.head {
			break
		}
		fact, err := codec.Decode(e.Name, e.Data)
		_, accepts := fact.(tx.Accepted)
		if err != nil || e.Version != eventlog.Version(i+1) || accepts != (i == 0) {
			f.broken = true
			return f, true
		}
		if e.Position <= r.at.rows {
			if f.row, err = f.row.Evolve(e, codec); err != nil {
				f.broken = true
				return f, true
			}
		}
		if i == 0 {
			f.first = e.Position
		}
		f.now, f.last = f.now.Evolve(fact), e.At
		if e.Position <= r.at.queue {
			f.queued = f.now
		}
		if e.Position <= r.at.groups {
			f.grouped = f.now
		}
		if e.Position <= r.at.owners {
			if f.owned, err = f.owned.Evolve(e, codec); err != nil {
				f.broken = true
				return f, true
			}
			f.unowned = f.now.Retired
		}
		if sealed, yes := fact.(tx.Finalized); yes {
			f.sealed = &sealed
		}
	}
	return f, true
}

// shownRow is a row of the read model in the form for comparison.
type shownRow struct {
	Position eventlog.Position `json:"position"`
	Version  eventlog.Version  `json:"version"`
	Sender   chain.Address     `json:"sender"`
	NonceKey chain.NonceKey    `json:"nonce_key"`
	Group    *chain.GroupID    `json:"group_id"`
	Status   tx.Status         `json:"status"`
	Data     transactions.Row  `json:"data"`
}

func (ref key) String() string { return ref.Chain.String() + "/" + ref.Hash.String() }

// key is a transaction's key in the tables.
type key payload.Ref

// rows compares the read model of transactions with the folds.
func (r *run) rows(ctx context.Context, some []folded) error {
	want, got := rows{}, rows{}
	hashes := make([][]byte, 0, len(some))
	whole := map[string]eventlog.Stream{}
	for _, f := range some {
		if f.broken {
			continue
		}
		hashes = append(hashes, f.Hash[:])
		name := key(f.Ref).String()
		whole[name] = f.stream
		if f.row.Version == 0 || f.row.State.Retired {
			continue
		}
		a := f.row.State.Accepted
		want[name] = row{f.stream, form(shownRow{f.row.Position, f.row.Version, a.Sender, a.NonceKey, f.row.State.Group(), f.row.State.Status, f.row})}
	}
	const text = `SELECT chain, hash, position, version, sender, nonce_key, group_id, status, data FROM transactions WHERE hash IN (KEYS)`
	err := r.query(ctx, text, hashes, func(columns func(...any) error) error {
		var id, position, version int64
		var hash, sender, nonceKey, group, data []byte
		var status string
		if err := columns(&id, &hash, &position, &version, &sender, &nonceKey, &group, &status, &data); err != nil {
			return err
		}
		name := key{chain.ID(id), chain.Hash(hash)}.String()
		shown := shownRow{Position: eventlog.Position(position), Version: eventlog.Version(version), Status: tx.Status(status)}
		copy(shown.Sender[:], sender)
		copy(shown.NonceKey[:], nonceKey)
		if group != nil {
			shown.Group = new(chain.GroupID)
			copy(shown.Group[:], group)
		}
		if err := json.Unmarshal(data, &shown.Data); err != nil {
			got[name] = row{whole[name], form(struct {
				shownRow
				Data string `json:"data"`
			}{shown, "cannot be read: " + err.Error()})}
			return nil //nolint:nilerr // that is what was found
		}
		got[name] = row{whole[name], form(shown)}
		return nil
	})
	r.drift(Transactions, normal(want), got)
	return err
}

// normal converts folds to their stored form, so that contents are compared, not memory layout.
func normal(want rows) rows {
	for name, w := range want {
		var back shownRow
		if err := json.Unmarshal(w.form, &back); err != nil {
			panic(fmt.Sprintf("verify: a stored row cannot be decoded: %v", err))
		}
		w.form = form(back)
		want[name] = w
	}
	return want
}

// queue compares the due queue with the folds: P2.
func (r *run) queue(ctx context.Context, some []folded) error {
	refs := make([]payload.Ref, 0, len(some))
	for _, f := range some {
		refs = append(refs, f.Ref)
	}
	found, err := r.Work.Work(ctx, refs)
	if err != nil {
		return err
	}
	sum := r.report.Drift[Queue]
	for _, f := range some {
		if f.broken {
			continue
		}
		row, there := found[f.Ref]
		why := r.queued(f, row, there)
		if there || why != "" {
			sum.Rows++
		}
		switch {
		case why == "":
		case there:
			sum.Different++
		default:
			sum.Missing++
		}
		if why != "" {
			r.broken(promises.Violation{Promise: promises.P2, Stream: f.stream, Evidence: fmt.Sprintf("it is %s, but %s", f.queued.Status, why)})
		}
	}
	r.report.Drift[Queue] = sum
	return nil
}

// farMost is the latest due time, from now, of an eligible transaction: the longest backoff,
// with some margin.
const farMost = time.Hour

// queued describes the error in a transaction's row in the due queue; empty if there is none.
func (r *run) queued(f folded, row tx.Work, there bool) string {
	s := f.queued
	phase := tx.Open
	switch {
	case s.Status == tx.StatusAbsent || s.Violated || s.Retired:
		if there {
			return "the queue has a row for it"
		}
		return ""
	case s.Sealed:
		if phase = tx.Sealed; !there {
			return "" // watched for a while, then removed
		}
	case s.Verdict != tx.StatusAbsent:
		phase = tx.Announced
	case s.Canceled || s.Refused:
		phase = tx.Watched
	}
	if why := promises.Queued(phase, s.Block, row, there); why != "" {
		return why
	}
	soon := r.Began.Add(farMost)
	eligible := time.Unix(int64(min(s.Accepted.EligibleAt, 1<<33)), 0)
	if phase == tx.Open && row.NextAt.After(soon) && row.NextAt.After(eligible.Add(farMost)) {
		return "the due queue has it due only at " + row.NextAt.UTC().Format(time.RFC3339)
	}
	return ""
}
