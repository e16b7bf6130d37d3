// Package operator is the operator commands shared by the programs that run delivery.
package operator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Program is the program to which the commands belong.
type Program struct {
	Name string
	// Settings adds the configuration's flags to a command; Resolve builds the configuration
	// from them.
	Settings func(*cobra.Command)
	Resolve  func(*cobra.Command) (config.Config, error)
	Shown    func(*cobra.Command) ([]config.Setting, error) // every setting's value
	// Forms are the program's own forms of an audit's subjects, described by FormsHelp. Both may be
	// nil or empty.
	Forms     auditor.Forms
	FormsHelp string
	// Servable returns the reasons why the program could not serve with the configuration, as
	// config.Problems. Schema is the JSON Schema of the configuration file.
	Servable func(*cobra.Command) error
	Schema   func() []byte
	Models   []projections.Model // in the order in which they are rebuilt
	Stderr   io.Writer           // for reports of trouble with the store
	// Audited are further kinds of streams that audit show and replay explain. FormsHelp describes their
	// names too.
	Audited []auditor.Kind
	// Judges judge the log by the program's promises beyond delivery, when it is verified;
	// VerifyHelp describes these promises. Both may be nil or empty.
	Judges     func() []verify.Judge
	VerifyHelp string
	// Restored appends what has to be in the log of a restored store before the store is used;
	// RestoreHelp describes it, in whole lines. Both may be nil or empty.
	Restored    func(ctx context.Context, log port.Store, b embedded.Backup) error
	RestoreHelp string
}

// Migrate is the command "migrate", for deployments whose service has no right to change
// schemas.
func (p Program) Migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the databases' schemas up to date and exit", Args: cobra.NoArgs,
		Long: "Bring the databases' schemas up to date and exit. A service does the same when it\nstarts, so use this if the service has no right to change schemas.",
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

// Meta records in events which user ran the command.
func Meta() eventlog.Meta {
	if u, err := user.Current(); err == nil {
		return eventlog.Meta{Actor: "operator " + u.Username}
	}
	return eventlog.Meta{Actor: "operator"}
}

// WithStorage opens a configuration's store as a service does, runs do, and closes it.
func (p Program) WithStorage(cmd *cobra.Command, c config.Config, do func(ctx context.Context, s app.Storage, log *slog.Logger) error) (err error) {
	log := p.logger(c)
	storage, err := app.OpenStorage(cmd.Context(), c, app.StorageOptions{Log: log, Crash: app.Crash()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close(context.WithoutCancel(cmd.Context()))) }()
	return do(cmd.Context(), storage, log)
}
