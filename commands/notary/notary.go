// Package notary is the process manager that seals the log: it folds every event into a
// hash and appends signed seals of that hash to a stream of its own.
package notary

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Name is the name of the notary's lease and actor.
const Name = "notary"

// readMax is how many events are read at once.
const readMax = 1000

// Settings set the frequency of seals.
type Settings struct {
	// Every is the pause between seals. Without new events there is no seal.
	Every time.Duration
	// Events bounds how many events one seal covers, at most [audit.MarksMax].
	Events int
}

// Seals handles the seals of a log.
type Seals = handler.Handler[audit.State, audit.Seal, audit.Event]

// Notary writes seals. One replica at a time should run it. Of two, one gets a conflict and
// begins again from the other's last seal.
type Notary struct {
	Seals    Seals
	Signer   audit.Signer
	Settings Settings
	// Sealed is called with the position up to which the log is sealed; may be nil.
	Sealed func(through eventlog.Position)
	Now    func() time.Time
	Log    *slog.Logger
}

// Run seals until ctx ends or the store fails. All its state is in the last seal.
func (n *Notary) Run(ctx context.Context) error {
	last, err := n.load(ctx)
	if err != nil {
		return err
	}
	n.sealed(last)
	draft := last.State.After()
	for {
		if err := n.read(ctx, &last, &draft); err != nil {
			return err
		}
		if draft.News() {
			if err := n.seal(ctx, &last, &draft); err != nil {
				return err
			}
		}
		if err := pause.For(ctx, n.Settings.Every); err != nil {
			return err
		}
	}
}

// read folds new events up to the head of the log, and seals whenever it has as many as a
// seal may cover.
func (n *Notary) read(ctx context.Context, last *handler.Result[audit.State], draft **audit.Draft) error {
	for batch, err := range n.Seals.Store.ReadAll(ctx, (*draft).Through(), eventlog.Filter{}, readMax) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		for _, r := range batch.Events {
			(*draft).Add(r)
			if (*draft).Len() < n.Settings.Events {
				continue
			}
			if err := n.seal(ctx, last, draft); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *Notary) seal(ctx context.Context, last *handler.Result[audit.State], draft **audit.Draft) error {
	seal := audit.Seal{Sealed: (*draft).Sealed(n.Signer, n.Now())}
	// Of two notaries the later one's view is old: a conflict is for Run's caller.
	next, err := n.Seals.DoOnce(ctx, audit.Stream, *last, seal, eventlog.Meta{Actor: Name})
	if err != nil {
		return err
	}
	*last, *draft = next, next.State.After()
	n.sealed(next)
	n.Log.Debug("a seal was written", "through", seal.Through, "events", seal.Count)
	return nil
}

func (n *Notary) sealed(last handler.Result[audit.State]) {
	if n.Sealed != nil {
		n.Sealed(last.State.Last.Through)
	}
}

// load returns the last seal. It holds the whole state, so the stream, which grows for
// ever, is not folded: its last version is found by doubling and halving.
func (n *Notary) load(ctx context.Context) (r handler.Result[audit.State], err error) {
	recorded, ok, err := lastOf(ctx, n.Seals.Store, audit.Stream)
	if err != nil || !ok {
		return r, err
	}
	e, err := n.Seals.Codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return r, fmt.Errorf("%s version %d: %w", audit.Stream, recorded.Version, err)
	}
	return handler.Result[audit.State]{State: audit.State{}.Evolve(e), Version: recorded.Version, Link: recorded.Linked()}, nil
}

// lastOf returns the last event of a stream, found with about two reads for each doubling
// of its length; ok is false if there is none.
func lastOf(ctx context.Context, store port.Store, stream eventlog.Stream) (last eventlog.Recorded, ok bool, err error) {
	look := func(after eventlog.Version) (found bool, err error) {
		for r, err := range store.ReadStream(ctx, stream, after) {
			if err != nil {
				return false, fmt.Errorf("read %s: %w", stream, err)
			}
			last, ok = r, true
			return true, nil
		}
		return false, nil
	}
	none := eventlog.Version(1) // the least version after which nothing was found
	for found := true; found; {
		if found, err = look(none - 1); err != nil {
			return last, false, err
		}
		if found {
			none = 2*last.Version + 1
		}
	}
	for ok && last.Version < none-1 {
		middle := last.Version + (none-1-last.Version)/2
		found, err := look(middle)
		if err != nil {
			return last, false, err
		}
		if !found {
			none = middle + 1
		}
	}
	return last, ok, nil
}
