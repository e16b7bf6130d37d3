package commands

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// Keyring is one process's copy of the API keys. It follows the log, so it learns within
// moments of a key that any replica creates or revokes. While the log is unreachable it
// keeps the last known keys.
type Keyring struct {
	Keys AccessKeys
	Log  *slog.Logger

	known atomic.Pointer[keysKnown]
}

type keysKnown struct {
	state   access.State
	version eventlog.Version
	at      eventlog.Position // the log has been read up to here
}

const (
	keyringRetry = time.Second            // pause before reading the log again after an error
	keyringBatch = 100                    // events read at once
	keyringPause = 100 * time.Millisecond // pause between batches; delays a revocation by at most this much
)

// Load reads all keys. Until it has returned nil, no request may be let in.
func (k *Keyring) Load(ctx context.Context) error {
	// Follow sees events again that are appended between the two reads.
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

// State returns the known keys. It panics before [Keyring.Load] has returned nil, because
// an empty set of keys means open access.
func (k *Keyring) State() access.State { return k.known.Load().state }

// Run follows the log until ctx ends. Load must have returned nil.
func (k *Keyring) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		k.Log.Warn("the keyring cannot be followed, using the last known keys", "err", err)
		_ = pause.For(ctx, keyringRetry) // the loop checks ctx
		if err := k.Load(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("the keyring could not be read", "err", err)
		}
	}
}

func (k *Keyring) follow(ctx context.Context) error {
	filter := eventlog.Filter{Names: k.Keys.Codec.Names()} // without Streams: the store finds names directly
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
		_ = pause.For(ctx, keyringPause) // the next batch reports the end of ctx
	}
	return ctx.Err()
}
