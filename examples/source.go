// Package examples holds three small programs that consume Watchtower's events, and what
// they have in common: the opening of a store. See docs/watermill.md.
package examples

import (
	"context"
	"strings"

	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Source is a store's events, and what is known of those who consume them.
type Source struct {
	Log    feed.Log
	Groups feed.Groups
	Close  func() error
}

// Open opens a store by the URL of its Postgres, or by the folder of an embedded one. The
// service may be at work on it.
func Open(ctx context.Context, store string) (Source, error) {
	if strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://") {
		db, err := postgres.Open(ctx, store, postgres.Options{Application: "example"})
		if err != nil {
			return Source{}, err
		}
		return Source{db.Log, db.Groups, func() error { return db.Close(context.WithoutCancel(ctx)) }}, nil
	}
	f, err := embedded.OpenFeed(store, embedded.FeedOptions{})
	if err != nil {
		return Source{}, err
	}
	return Source{f, f.Groups(), f.Close}, nil
}
