package commands

import (
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// AccessKeys handles the commands of domain/access.
type AccessKeys = handler.Handler[access.State, access.Command, access.Event]

// Keys creates, revokes and lists API keys.
type Keys struct {
	AccessKeys
	Now func() time.Time
}

// Create creates a key with the permissions in wanted, and draws its id and secret. token
// is the only copy of the secret.
func (k Keys) Create(ctx context.Context, wanted access.Key, meta eventlog.Meta) (token string, key access.Key, err error) {
	token, wanted.ID, wanted.Digest, err = access.NewToken(k.Random)
	if err != nil {
		return "", key, err
	}
	r, err := k.Do(ctx, access.Stream, access.Create{Key: wanted, At: k.Now()}, meta)
	if err != nil {
		return "", key, err
	}
	return token, r.State.Keys[wanted.ID].Key, nil
}

// Revoke revokes a key. A key that is already revoked stays as it was.
func (k Keys) Revoke(ctx context.Context, id access.KeyID, reason string, meta eventlog.Meta) (access.Entry, error) {
	r, err := k.Do(ctx, access.Stream, access.Revoke{ID: id, Reason: reason, At: k.Now()}, meta)
	return r.State.Keys[id], err
}

// EndSession ends a session at every replica. A session that is over or ended stays so.
func (k Keys) EndSession(ctx context.Context, e access.SessionEnded, meta eventlog.Meta) error {
	e.At = k.Now()
	_, err := k.Do(ctx, access.Stream, access.EndSession(e), meta)
	return err
}

// List returns every key ever created, the oldest first.
func (k Keys) List(ctx context.Context) ([]access.Entry, error) {
	r, err := k.Load(ctx, access.Stream)
	if err != nil {
		return nil, err
	}
	entries := make([]access.Entry, 0, len(r.State.Keys))
	for _, e := range r.State.Keys {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b access.Entry) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return slices.Compare(a.Key.ID[:], b.Key.ID[:])
	})
	return entries, nil
}
