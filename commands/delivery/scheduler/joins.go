package scheduler

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const firstsMax = 16 // first events of streams that are read at once

var resubmitted = eventlog.Filter{Names: []string{"tx.resubmitted."}}

// earlier are the terms of transactions whose resubmissions an earlier version recorded, without
// terms: those that a batch needs.
type earlier map[eventlog.Stream]found

// found is what the log has: no terms if it no longer has the transaction.
type found struct {
	terms *tx.Terms
	err   error
}

// ahead reads the terms that the resubmissions of a batch lack, each once and side by side. All
// clients' first attempts wait for the batch. Resubmissions that this version recorded read nothing.
func (f *Feeder) ahead(ctx context.Context, events []eventlog.Recorded) {
	f.terms = nil
	var lacking []eventlog.Stream
	for _, r := range events {
		if !resubmitted.Passes("", r.Name) {
			continue
		}
		e, err := f.Codec.Decode(r.Name, r.Data)
		if err != nil {
			break // plan reports it; nothing behind it is planned
		}
		joined, ok := e.(tx.Resubmitted)
		if _, known := f.terms[r.Stream]; !ok || known || joined.Terms != nil {
			continue
		}
		if f.terms == nil {
			f.terms = earlier{}
		}
		f.terms[r.Stream] = found{}
		lacking = append(lacking, r.Stream)
	}
	firsts := make([]found, len(lacking))
	//nolint:errcheck // each stream has its own error
	commands.Each(len(lacking), firstsMax, func(i int) error {
		firsts[i].terms, firsts[i].err = f.first(ctx, lacking[i])
		return nil
	})
	for i, stream := range lacking {
		f.terms[stream] = firsts[i]
	}
}

// first returns the terms in a transaction's first event; nil if the log no longer has it.
func (f *Feeder) first(ctx context.Context, stream eventlog.Stream) (*tx.Terms, error) {
	for first, err := range f.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := f.Codec.Decode(first.Name, first.Data)
		if err != nil {
			return nil, err
		}
		if a, ok := e.(tx.Accepted); ok {
			terms := a.Terms()
			return &terms, nil
		}
		break
	}
	return nil, nil //nolint:nilnil // the log no longer has it
}

// join returns the change that makes a client another owner of its row.
func (f *Feeder) join(id chain.ID, hash chain.Hash, e tx.Resubmitted, r eventlog.Recorded) ([]tx.Change, error) {
	if e.Terms == nil {
		before := f.terms[r.Stream]
		if e.Terms = before.terms; before.err != nil || e.Terms == nil {
			return nil, before.err
		}
	}
	if e.Terms.Sealed {
		return nil, nil
	}
	return []tx.Change{{Chain: id, Hash: hash, Join: f.owner(id, *e.Terms, e.Client, r)}}, nil
}

// owner returns the owner that a resubmission adds.
func (f *Feeder) owner(id chain.ID, terms tx.Terms, client string, r eventlog.Recorded) *tx.Owner {
	return &tx.Owner{
		Client: turnOf(client, r.Meta.Actor), Account: terms.Account(id, client),
		NextAt: tx.FirstDue(terms.Opens, f.Lead, r.At),
	}
}
