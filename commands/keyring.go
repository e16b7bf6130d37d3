package commands

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Keyring is the API keys as one process knows them. It follows the log, so that a
// key which is created or revoked anywhere is known here moments later; while the
// log cannot be reached, what was known last holds.
type Keyring struct {
	Keys AccessKeys
	Log  *slog.Logger

	known atomic.Pointer[keysKnown]
}

type keysKnown struct {
	state   access.State
	version event.Version
	at      event.Position // the log has been looked through up to here
}

const (
	keyringRetry = time.Second            // the pause before the log is asked again after trouble
	keyringBatch = 100                    // events read at once
	keyringPause = 100 * time.Millisecond // between looks at a log that grows all the time; a revoked key is good for so long
)

// Load reads all keys. Until it has returned nil, nobody may be let in.
func (k *Keyring) Load(ctx context.Context) error {
	// What is appended between the two reads is met again when following.
	head, err := k.Keys.Store.Head(ctx)
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	r, err := k.Keys.Load(ctx, access.Stream)
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	k.known.Store(&keysKnown{r.State, r.Version, head})
	return nil
}

// State is the keys as they are known. Before [Keyring.Load] it panics: no keys
// would mean that everybody may come in.
func (k *Keyring) State() access.State { return k.known.Load().state }

// Run follows the log until ctx ends. Load must have returned.
func (k *Keyring) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		k.Log.Warn("keyring not followed, keys stay as they were", "err", err)
		_ = Pause(ctx, keyringRetry) // the loop asks the context
		if err := k.Load(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("keyring not read", "err", err)
		}
	}
}

func (k *Keyring) follow(ctx context.Context) error {
	filter := event.Filter{Names: k.Keys.Codec.Names()} // which the store finds without a look at their streams
	for batch, err := range k.Keys.Store.Subscribe(ctx, k.known.Load().at, filter, keyringBatch) {
		if err != nil {
			return err
		}
		next := *k.known.Load()
		for _, recorded := range batch.Events {
			switch {
			case recorded.Stream != access.Stream || recorded.Version <= next.version:
				continue
			case recorded.Version != next.version+1:
				return fmt.Errorf("%s went from version %d to %d", access.Stream, next.version, recorded.Version)
			}
			e, err := k.Keys.Codec.Decode(recorded.Name, recorded.Data)
			if err != nil {
				return err
			}
			next.state, next.version = next.state.Evolve(e), recorded.Version
		}
		next.at = batch.Next
		k.known.Store(&next)
		_ = Pause(ctx, keyringPause) // its end shows in the next batch
	}
	return ctx.Err()
}
