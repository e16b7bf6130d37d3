package delivery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

const (
	// decodePlaces is the number of transactions, of all clients, that are decoded at once to be
	// shown.
	decodePlaces = 2
	// decodeShare is the number of them of one client.
	decodeShare = 1
)

// newDecodes returns the places of reads that decode transactions.
func newDecodes() *rest.Places { return rest.NewPlaces(decodePlaces, decodeShare, 0) }

// transaction answers GET /v1/transactions/{hash}.
func (a *api) transaction(r rest.Request) error {
	hash, id, q, err := named(r, "chainId", "wait", "timeout")
	if err != nil {
		return err
	}
	wanted, err := q.wait()
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	row, err := a.find(ctx, id, hash)
	if err != nil {
		return err
	}
	var waited *rest.Waited
	if wanted != nil {
		waited = a.waitFor(r, *wanted, row.State.Accepted)
		again, done := r.Work() // the first context may have expired
		defer done()
		ctx = again
		// The read model may be behind the state that the wait has seen.
		if row, err = a.fold(ctx, row, tx.Stream(row.State.Accepted.Chain, hash)); err != nil {
			return err
		}
	}
	v := a.viewer(r)
	tag := tagOf(v, row)
	if wanted == nil && r.Unchanged(tag) {
		r.Tagged(tag)
		r.Writer().WriteHeader(http.StatusNotModified)
		return nil
	}
	described, err := a.describe(ctx, v, []transactions.Row{row})
	if err != nil {
		return err
	}
	shown := described[0]
	shown.Waited = waited
	if !row.State.Erased && (r.Owns() || !secret(row.State)) {
		signed, read, ok := a.signed(ctx, r, row.State.Accepted)
		if r.ChargeRead(read); ok {
			shown.addContent(signed)
		}
	}
	if wanted == nil {
		r.Tagged(tag)
	}
	return r.ReplyRead(http.StatusOK, shown)
}

// named reads the hash and chain of the transaction that a request is about. The chain is 0 if
// the request does not give it. A hash occurs on one chain only, because the signed bytes
// contain the chain id.
func named(r rest.Request, known ...string) (hash chain.Hash, id chain.ID, q parameters, err error) {
	if hash, err = hashOf(r); err != nil {
		return hash, 0, q, err
	}
	if q, err = readParameters(r, known...); err != nil {
		return hash, 0, q, err
	}
	id, err = q.chain()
	return hash, id, q, err
}

// find returns a transaction's row, brought up to date from its stream. So a client can read
// its own submission or change at once.
func (a *api) find(ctx context.Context, id chain.ID, hash chain.Hash) (transactions.Row, error) {
	rows, err := a.Query.Find(ctx, id, hash)
	if err != nil {
		return transactions.Row{}, err
	}
	var known transactions.Row
	candidates := a.candidates(id)
	if len(rows) > 0 {
		known, candidates = rows[0], []chain.ID{rows[0].State.Accepted.Chain}
	}
	for _, id := range candidates {
		row, err := a.fold(ctx, known, tx.Stream(id, hash))
		switch {
		case err != nil:
			return row, err
		case row.State.Retired:
			return row, tx.ErrUnknown.Because("it is past retention, but its events still exist")
		case row.Version > 0:
			return row, nil
		}
	}
	return transactions.Row{}, tx.ErrUnknown
}

// candidates are the chains that may have a hash that is not in the read model.
func (a *api) candidates(id chain.ID) []chain.ID {
	if id != 0 {
		return []chain.ID{id}
	}
	return slices.Sorted(maps.Keys(a.Submit.Decoders))
}

// fold applies the events of the stream that the row does not contain yet.
func (a *api) fold(ctx context.Context, row transactions.Row, stream eventlog.Stream) (_ transactions.Row, err error) {
	for recorded, err := range a.stream(ctx, stream, row.Version) {
		if err != nil {
			return row, err
		}
		if row, err = row.Evolve(recorded, a.Submit.Transactions.Codec); err != nil {
			return row, err
		}
	}
	return row, nil
}

func (a *api) stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return a.Submit.Transactions.Store.ReadStream(ctx, stream, after)
}

// describe returns rows as shown to a viewer, with the due queue's present counters.
func (a *api) describe(ctx context.Context, v viewer, rows []transactions.Row) ([]*transaction, error) {
	hashes := map[chain.ID][]chain.Hash{}
	for _, row := range rows {
		t := row.State.Accepted
		hashes[t.Chain] = append(hashes[t.Chain], t.Hash)
	}
	work := map[payload.Ref]tx.Work{}
	for _, id := range slices.Sorted(maps.Keys(hashes)) {
		found, err := a.Board.Find(ctx, id, hashes[id])
		if err != nil {
			return nil, fmt.Errorf("due queue of chain %s: %w", id, err)
		}
		for _, w := range found {
			work[payload.Ref{Chain: w.Chain, Hash: w.Hash}] = w
		}
	}
	shown := make([]*transaction, len(rows))
	for i, row := range rows {
		shown[i] = shownOf(v, row)
		if w, ok := work[payload.Ref{Chain: row.State.Accepted.Chain, Hash: row.State.Accepted.Hash}]; ok {
			shown[i].addWork(w.In(v.is)) // neither the due time nor the hold of another owner
		}
	}
	return shown, nil
}

// signed decodes a transaction's bytes, while they are kept. Erased bytes are not an error.
// Bytes that cannot be read are logged for the operator, and the rest of the answer is still
// sent. size is their number.
func (a *api) signed(ctx context.Context, r rest.Request, t tx.Accepted) (s chain.Signed, size int, ok bool) {
	decode := a.Submit.Decoders[t.Chain]
	if decode == nil {
		return s, 0, false
	}
	s, size, err := decoded(ctx, a.decodes, r, func(ctx context.Context) ([]byte, error) {
		return a.Submit.Vault.Bytes(ctx, payload.Ref{Chain: t.Chain, Hash: t.Hash})
	}, decode)
	if err != nil && !errors.Is(err, payload.ErrGone) {
		a.Log.LogAttrs(ctx, slog.LevelError, "the payload cannot be read",
			slog.String("request", r.ID()), slog.String("tx", t.Hash.String()), slog.Any("err", err))
	}
	return s, size, err == nil
}

// decoded reads a transaction's bytes and decodes them, to show it to a client, in one of the places
// for that. Decoding verifies a signature. It takes none of the slots of submissions, and holds no
// bytes while it waits. size is the number of bytes read.
func decoded[T any](ctx context.Context, places *rest.Places, r rest.Request, read func(context.Context) ([]byte, error), decode func(raw []byte) (T, error)) (shown T, size int, err error) {
	leave, err := r.Enter(ctx, places)
	if err != nil {
		return shown, 0, err
	}
	defer leave()
	raw, err := read(ctx)
	if err != nil {
		return shown, 0, err
	}
	shown, err = decode(raw)
	return shown, len(raw), err
}
