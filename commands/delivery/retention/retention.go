// Package retention is the process manager that erases signed bytes that may not be sent
// again, and later lets the read models forget the transaction.
package retention

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Settings set how long data is kept. Zero Rows keeps rows for ever.
type Settings struct {
	Bytes time.Duration // signed bytes, after the transaction is settled
	Rows  time.Duration // read-model rows, after the bytes are erased and the verdict is final
	Sweep time.Duration // the pause between sweeps for orphaned payloads
}

// Retention erases and retires. One replica at a time runs each part, by lease.
type Retention struct {
	Store        port.Store
	Checkpoints  port.Checkpoints
	Transactions commands.Transactions
	Payloads     commands.PayloadRows
	Settings     Settings
	// Wanted reports whether a payload that no transaction names is still needed, by a
	// component that stores bytes long before submitting them. nil means none is.
	Wanted func(ctx context.Context, ref payload.Ref) (bool, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// Part is one task of retention, with the name of its lease and checkpoint.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

const batchMax = 500

// Parts lists the tasks under these settings.
func (r *Retention) Parts() []Part {
	parts := []Part{
		// Canceled transactions are erased at once, and so are transactions that can never
		// be sent.
		r.part("retention.canceled", 0, r.eraseUnwanted, "tx.canceled_locally.", "tx.rejected."),
		r.part("retention.settled", r.Settings.Bytes, r.eraseSettled, "tx.finalized."),
		{"retention.orphans", r.sweepForEver},
	}
	if r.Settings.Rows > 0 {
		parts = append(parts, r.part("retention.rows", r.Settings.Rows, r.retire, "tx.payload_erased.", "tx.finalized."))
	}
	return parts
}

// part follows events by name and acts on each transaction when its event is old enough.
// The log is in order of time, so waiting for one event's age never delays another.
func (r *Retention) part(name string, age time.Duration, act func(context.Context, []eventlog.Recorded) error, names ...string) Part {
	f := follower.Follower{
		Store: r.Store, Checkpoints: r.Checkpoints, Reader: name,
		Filter: eventlog.Filter{Names: names}, Max: batchMax,
	}
	return Part{name, func(ctx context.Context) error {
		return f.Run(ctx, func(ctx context.Context, events []eventlog.Recorded) error {
			// The events' times are the store's: if this clock is behind, the pause must
			// not exceed age.
			last := events[len(events)-1]
			if err := pause.For(ctx, min(last.At.Add(age).Sub(r.Now()), age)); err != nil {
				return err
			}
			return act(ctx, events)
		})
	}}
}

// eraseUnwanted erases transactions that their owner canceled or every node refused for
// good. It ignores other refusals, even if the transaction has been settled when the
// refusal is read.
func (r *Retention) eraseUnwanted(ctx context.Context, events []eventlog.Recorded) error {
	return r.erase(ctx, events, func(s tx.State) bool { return s.Canceled || s.Refused })
}

// eraseSettled erases settled transactions.
func (r *Retention) eraseSettled(ctx context.Context, events []eventlog.Recorded) error {
	return r.erase(ctx, events, func(tx.State) bool { return true })
}

// erase erases the bytes from every medium, then records that. After a crash between the
// two it erases again, which is harmless.
func (r *Retention) erase(ctx context.Context, events []eventlog.Recorded, due func(tx.State) bool) error {
	byChain := map[chain.ID][]chain.Hash{}
	for _, e := range events {
		id, hash, err := tx.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		result, err := r.Transactions.Load(ctx, e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		// Decided on the current state: a rejection may not be permanent, a settled
		// transaction may have been erased before, and a violated one is left to an
		// operator.
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

// retire lets the read models forget a transaction, when its erasure is old enough.
// Transactions canceled or refused by every node are erased before their verdict is final:
// these are retired after Finalized.
func (r *Retention) retire(ctx context.Context, events []eventlog.Recorded) error {
	for _, e := range events {
		if strings.HasPrefix(e.Name, "tx.finalized.") {
			result, err := r.Transactions.Load(ctx, e.Stream)
			if err != nil {
				return &eventlog.Stuck{At: e.Position, Err: err}
			}
			if !result.State.Canceled && !result.State.Refused {
				continue
			}
		}
		if err := r.command(ctx, e.Stream, tx.Retire{At: r.Now()}); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	return nil
}

func (r *Retention) command(ctx context.Context, stream eventlog.Stream, c tx.Command) error {
	_, err := r.Transactions.Do(ctx, stream, c, eventlog.Meta{Actor: "retention"})
	if commands.IsRefusal(err) {
		return nil // not settled after all: another event will bring it here again
	}
	return err
}

// orphanAge is the minimum age at which bytes without an Accepted are swept: far longer
// than a submission takes.
const orphanAge = time.Hour

func (r *Retention) sweepForEver(ctx context.Context) error {
	for {
		if n, err := r.Sweep(ctx, r.Now().Add(-orphanAge)); err != nil && ctx.Err() == nil {
			r.Log.Warn("sweep for orphaned payloads failed", "err", err)
		} else if n > 0 {
			r.Log.Info("orphaned payloads erased", "count", n)
		}
		if err := pause.For(ctx, r.Settings.Sweep); err != nil {
			return err
		}
	}
}

// Sweep erases payloads kept before a time that no transaction names and Wanted does not
// report, or whose transaction is recorded as erased. It returns their number.
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
	// Its owner may be submitting it again at this moment: a payload that is kept anew
	// stays.
	if err := r.Payloads.EraseOrphan(ctx, ref, before); err != nil {
		return 0, err
	}
	return 1, nil
}
