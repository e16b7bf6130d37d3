// Package operator holds what operators do at the command line of every program that runs
// delivery.
package operator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Program is the one whose commands they are.
type Program struct {
	Name string
	// Settings gives a command the flags of the configuration, and Resolve makes that of
	// them.
	Settings func(*cobra.Command)
	Resolve  func(*cobra.Command) (config.Config, error)
	Models   []projections.Model // in the order in which they are made anew
	Stderr   io.Writer           // where trouble with the store is told
}

// Meta says in events who was at the command line.
func Meta() event.Meta {
	if u, err := user.Current(); err == nil {
		return event.Meta{Actor: "operator " + u.Username}
	}
	return event.Meta{Actor: "operator"}
}

// WithStorage opens a configuration's store, as a service does, for as long as do takes.
func (p Program) WithStorage(cmd *cobra.Command, c config.Config, do func(ctx context.Context, s app.Storage, log *slog.Logger) error) (err error) {
	log := app.Logger(c.Log.Format, p.Stderr, c.Log.Level)
	storage, err := app.OpenStorage(cmd.Context(), c, app.StorageOptions{Log: log, Crash: app.Crash()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close(context.WithoutCancel(cmd.Context()))) }()
	return do(cmd.Context(), storage, log)
}
