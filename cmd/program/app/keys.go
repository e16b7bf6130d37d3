package app

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

func accessKeys(store port.Store, random io.Reader) commands.AccessKeys {
	return commands.AccessKeys{Store: store, Codec: access.Codec(), Random: random}
}

// Keys are the API keys in a store.
func Keys(store port.Store) commands.Keys {
	return commands.Keys{AccessKeys: accessKeys(store, rand.Reader), Now: time.Now}
}

// knowKeys reads the API keys, and returns an error where strangers could reach an API without
// keys.
func (a *App) knowKeys(ctx context.Context, c config.Config) error {
	if err := a.keyring.Load(ctx); err != nil {
		return err
	}
	return c.CheckAccess(a.keyring.State().Closed())
}
