package intake

import (
	"context"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// History yields the events of a client's intent. A nil client may read every client's intents. If
// the intent is unknown or another client's, History yields [intent.ErrUnknown] alone, without an
// event. It decodes nothing of another client's intent but its owner.
func (d *Desk) History(ctx context.Context, client *string, id chain.IntentID) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		known := false
		for recorded, err := range d.Intents.Store.ReadStream(ctx, intent.Stream(id), 0) {
			if err == nil && !known {
				err = d.belongs(recorded, client)
			} else if err != nil {
				err = fmt.Errorf("read %s: %w", intent.Stream(id), err)
			}
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			if known = true; !yield(recorded, nil) {
				return
			}
		}
		if !known {
			yield(eventlog.Recorded{}, intent.ErrUnknown)
		}
	}
}

// belongs returns [intent.ErrUnknown] if an intent with this first event is another client's.
func (d *Desk) belongs(first eventlog.Recorded, client *string) error {
	if client == nil {
		return nil
	}
	owner, err := intent.OwnerOf(first, d.Intents.Codec)
	if err == nil && owner != *client {
		err = intent.ErrUnknown
	}
	return err
}

// load folds a client's intent, and adds the bytes of its events to read.
func (d *Desk) load(ctx context.Context, client *string, id chain.IntentID, read *int) (r handler.Result[intent.State], err error) {
	for recorded, err := range d.History(ctx, client, id) {
		if err != nil {
			return r, err
		}
		*read += len(recorded.Data)
		e, err := d.Intents.Codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return r, fmt.Errorf("%s version %d: %w", recorded.Stream, recorded.Version, err)
		}
		r.State, r.Version, r.Link = r.State.Evolve(e), recorded.Version, recorded.Linked()
	}
	return r, nil
}

// Refresh applies the events of an intent that its state does not contain yet.
func (d *Desk) Refresh(ctx context.Context, seen handler.Result[intent.State]) (handler.Result[intent.State], error) {
	stream := intent.Stream(seen.State.Requested.ID)
	for recorded, err := range d.Intents.Store.ReadStream(ctx, stream, seen.Version) {
		if err != nil {
			return seen, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := d.Intents.Codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return seen, fmt.Errorf("%s version %d: %w", stream, recorded.Version, err)
		}
		seen.State, seen.Version = seen.State.Evolve(e), recorded.Version
	}
	return seen, nil
}

// meter is a store that adds the bytes of the events that it yields from streams to read.
type meter struct {
	port.Store
	read *int
}

// metered returns a copy of the desk that adds the bytes of the events that it reads to read.
func (d *Desk) metered(read *int) *Desk {
	copied := *d
	copied.Intents.Store = meter{d.Intents.Store, read}
	return &copied
}

// ReadStream implements [commands.Store].
func (m meter) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for recorded, err := range m.Store.ReadStream(ctx, stream, after) {
			if *m.read += len(recorded.Data); !yield(recorded, err) {
				return
			}
		}
	}
}

// Get returns an intent of a client as its events say now. For another client's intent, or none, the
// error is [intent.ErrUnknown].
func (d *Desk) Get(ctx context.Context, client string, id chain.IntentID) Answer {
	read := 0
	r, err := d.load(ctx, &client, id, &read)
	return Answer{State: r.State, Version: r.Version, Known: true, Read: read, Err: err}
}
