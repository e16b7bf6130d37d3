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
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/verify"
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
	Shown    func(*cobra.Command) ([]config.Setting, error) // every setting's value
	Models   []projections.Model                            // in the order in which they are made anew
	Stderr   io.Writer                                      // where trouble with the store is told
	// Judges judge the log by what the program promises beside delivery, when it is
	// verified, and VerifyHelp says of what; nil and empty are nobody and nothing.
	Judges     func() []verify.Judge
	VerifyHelp string
}

// Migrate is the command "migrate", for those who give a service no right to change
// schemas.
func (p Program) Migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the databases' schemas up to date and end", Args: cobra.NoArgs,
		Long: "Bring the databases' schemas up to date and end. Serving does the same at its start,\nso this is for those who give the service no right to change schemas.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			return p.WithStorage(cmd, c, func(context.Context, app.Storage, *slog.Logger) error { return nil })
		},
	}
	p.Settings(cmd)
	return cmd
}

func (p Program) logger(c config.Config) *slog.Logger {
	return app.Logger(c.Log.Format, p.Stderr, c.Log.Level)
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
	log := p.logger(c)
	storage, err := app.OpenStorage(cmd.Context(), c, app.StorageOptions{Log: log, Crash: app.Crash()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close(context.WithoutCancel(cmd.Context()))) }()
	return do(cmd.Context(), storage, log)
}
