// Package retention is the process manager that erases signed bytes which may not
// be sent again, and later lets the read models forget the transaction.
package retention

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Settings say how long what is kept. Zero Rows keeps rows for ever.
type Settings struct {
	Bytes time.Duration // signed bytes, after the transaction is settled
	Rows  time.Duration // read-model rows, after the bytes are erased and the verdict is final
	Sweep time.Duration // the pause between sweeps for orphaned payloads
}

// Retention erases and retires. One replica at a time runs each part, by lease.
type Retention struct {
	Store        commands.Store
	Checkpoints  commands.Checkpoints
	Transactions commands.Transactions
	Payloads     commands.PayloadRows
	Settings     Settings
	// Wanted reports whether payloads that no transaction names are wanted all the same, by
	// whoever keeps bytes long before they are submitted. nil wants none.
	Wanted func(ctx context.Context, ref payload.Ref) (bool, error)
	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger
}

// Part is one thing that retention does, under a name for its lease and checkpoint.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

const batchMax = 500

// Parts lists what there is to do with these settings.
func (r *Retention) Parts() []Part {
	parts := []Part{
		// The owner's wish is carried out at once; so is what can never be sent.
		r.part("retention.canceled", 0, r.eraseUnwanted, "tx.canceled_locally.", "tx.rejected."),
		r.part("retention.settled", r.Settings.Bytes, r.eraseSettled, "tx.finalized."),
		{"retention.orphans", r.sweepForEver},
	}
	if r.Settings.Rows > 0 {
		parts = append(parts, r.part("retention.rows", r.Settings.Rows, r.retire, "tx.payload_erased.", "tx.finalized."))
	}
	return parts
}

// part follows events by name and acts on each one's transaction when it is old
// enough. The log is in order of time, so waiting for one event's age never makes
// another late.
func (r *Retention) part(name string, age time.Duration, act func(context.Context, []event.Recorded) error, names ...string) Part {
	f := commands.Follower{
		Store: r.Store, Checkpoints: r.Checkpoints, Reader: name,
		Filter: event.Filter{Names: names}, Max: batchMax,
	}
	return Part{name, func(ctx context.Context) error {
		return f.Run(ctx, func(ctx context.Context, events []event.Recorded) error {
			// The events' times are the store's: by a clock that is behind it, what is
			// left must not be more than all.
			last := events[len(events)-1]
			if err := commands.Pause(ctx, min(last.At.Add(age).Sub(r.Now()), age)); err != nil {
				return err
			}
			return act(ctx, events)
		})
	}}
}

// eraseUnwanted erases what its owner canceled or every node refused for good. A
// refusal that was not for good makes nothing of it, though the transaction may have
// been settled by the time that the refusal is read.
func (r *Retention) eraseUnwanted(ctx context.Context, events []event.Recorded) error {
	return r.erase(ctx, events, func(s tx.State) bool { return s.Canceled || s.Refused })
}

// eraseSettled erases what is settled.
func (r *Retention) eraseSettled(ctx context.Context, events []event.Recorded) error {
	return r.erase(ctx, events, func(tx.State) bool { return true })
}

// erase takes the bytes out of every medium, then records that they are gone: a
// crash between the two erases again, which is harmless.
func (r *Retention) erase(ctx context.Context, events []event.Recorded, due func(tx.State) bool) error {
	byChain := map[chain.ID][]chain.Hash{}
	for _, e := range events {
		id, hash, err := tx.ParseStream(e.Stream)
		if err != nil {
			return &event.Stuck{At: e.Position, Err: err}
		}
		result, err := r.Transactions.Load(ctx, e.Stream)
		if err != nil {
			return &event.Stuck{At: e.Position, Err: err}
		}
		// Asked of the state as it is now: a rejection may not be permanent, what was
		// settled may have been erased before, and a violated one is an operator's.
		facts, err := result.State.Decide(tx.Erase{At: r.Now()})
		if err != nil || len(facts) == 0 || !due(result.State) {
			continue
		}
		byChain[id] = append(byChain[id], hash)
	}
	for id, hashes := range byChain {
		if err := r.Payloads.Erase(ctx, id, hashes); err != nil {
			return fmt.Errorf("erase %d payloads: %w", len(hashes), err)
		}
		for _, hash := range hashes {
			if err := r.command(ctx, tx.Stream(id, hash), tx.Erase{At: r.Now()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// retire lets the read models forget. It is brought here by the erasure; but whose
// bytes went before the chain had spoken, because they were canceled or refused by
// every node, is brought here again by the verdict's block.
func (r *Retention) retire(ctx context.Context, events []event.Recorded) error {
	for _, e := range events {
		if strings.HasPrefix(e.Name, "tx.finalized.") {
			result, err := r.Transactions.Load(ctx, e.Stream)
			if err != nil {
				return &event.Stuck{At: e.Position, Err: err}
			}
			if !result.State.Canceled && !result.State.Refused {
				continue
			}
		}
		if err := r.command(ctx, e.Stream, tx.Retire{At: r.Now()}); err != nil {
			return &event.Stuck{At: e.Position, Err: err}
		}
	}
	return nil
}

func (r *Retention) command(ctx context.Context, stream event.Stream, c tx.Command) error {
	origin, err := commands.Begin(r.Random, event.Meta{Actor: "retention"})
	if err != nil {
		return err
	}
	if _, err = r.Transactions.Handle(ctx, stream, c, origin); commands.IsRefusal(err) {
		return nil // not settled after all: another fact will bring it here again
	}
	return err
}

// orphanAge is how old bytes without an Accepted must be before they are swept:
// far longer than a submission takes.
const orphanAge = time.Hour

func (r *Retention) sweepForEver(ctx context.Context) error {
	for {
		if n, err := r.Sweep(ctx, r.Now().Add(-orphanAge)); err != nil && ctx.Err() == nil {
			r.Log.Warn("sweep for orphaned payloads failed", "err", err)
		} else if n > 0 {
			r.Log.Info("orphaned payloads erased", "count", n)
		}
		if err := commands.Pause(ctx, r.Settings.Sweep); err != nil {
			return err
		}
	}
}

// Sweep erases payloads kept before a time that no transaction names and nobody wants, or
// whose transaction says that they were erased. It returns how many.
func (r *Retention) Sweep(ctx context.Context, before time.Time) (swept int, err error) {
	var after payload.Ref
	for {
		refs, err := r.Payloads.Orphans(ctx, before, after, batchMax)
		if err != nil {
			return swept, err
		}
		for _, ref := range refs {
			gone, err := r.sweep(ctx, ref, before)
			if err != nil {
				return swept, err
			}
			swept += gone
		}
		if len(refs) < batchMax {
			return swept, nil
		}
		after = refs[len(refs)-1]
	}
}

func (r *Retention) sweep(ctx context.Context, ref payload.Ref, before time.Time) (int, error) {
	result, err := r.Transactions.Load(ctx, tx.Stream(ref.Chain, ref.Hash))
	switch {
	case err != nil:
		return 0, err
	case result.Version > 0 && !result.State.Erased:
		return 0, nil
	}
	if result.Version == 0 && r.Wanted != nil {
		if wanted, err := r.Wanted(ctx, ref); err != nil || wanted {
			return 0, err
		}
	}
	// Its owner may be submitting it again at this moment: what is kept anew stays.
	if err := r.Payloads.EraseOrphan(ctx, ref, before); err != nil {
		return 0, err
	}
	return 1, nil
}
