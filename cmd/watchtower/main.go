// Command watchtower delivers signed transactions. It holds no key and links no signing code.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/check"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Set at build time by -ldflags "-X main.version=…".
var version, gitSHA, buildTimestamp string //nolint:gochecknoglobals // the linker writes them, nobody else

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := terminal.Run(ctx, command(os.Stdin, os.Stdout, os.Stderr))
	stop()
	os.Exit(int(status))
}

func build() app.Build {
	return app.Build{Version: version, GitSHA: gitSHA, Timestamp: buildTimestamp}.Complete()
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "watchtower",
		Short: "Deliver signed transactions exactly once, or report the exact reason why not",
		Long: "Deliver signed transactions exactly once, or report the exact reason why not.\n\n" +
			"Commands for clients call a running service (--url, --context). Commands for the store open the\n" +
			"store of the configuration themselves (--config, --store).",
	}
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	p := program(stderr)
	operator.Group(root, operator.Clients, remote.Transactions(service(), p.Name), remote.Groups(service(), p.Name), remote.Tail(service(), p.Name), remote.Listen(service(), p.Name, nil, remote.EventPosting), remote.Contexts(p.Name))
	operator.Group(root, operator.Service, serve(stderr), p.Doctor("doctor [HASH]..."), check.Command(service(), internal(), p.Name), remote.HealthCheck(service(), p.Name), p.Configuration(), p.Version(build()))
	operator.Group(root, operator.Store, p.Audit(), p.Verify(), p.Projections(), p.Archive(), p.Backup(), p.Restore(), p.Keys(), p.Migrate(), p.Consumers(), forward(p))
	operator.Finish(root)
	return root
}

// service is the listener that clients' commands call.
func service() remote.Listener {
	return remote.Listener{Name: "the service", Variable: "WATCHTOWER_URL", Standard: "http://127.0.0.1:8420", Keys: []string{"WATCHTOWER_API_KEY"}, Member: remote.Delivery}
}

// internal is the listener with the metrics.
func internal() remote.Listener {
	return remote.Listener{Name: "the internal listener (metrics-listen)", Variable: "WATCHTOWER_ADMIN_URL", Standard: "http://127.0.0.1:8421", Keys: []string{"WATCHTOWER_API_KEY"}, Member: remote.Internal}
}

// resolve reads the configuration of a command.
func resolve(cmd *cobra.Command) (config.Config, []config.Setting, error) {
	return config.Resolve(cmd.Flags(), os.Environ(), os.ReadFile)
}

// settings adds the configuration's flags to a command.
func settings(cmd *cobra.Command) {
	operator.Settings(cmd, "watchtower", "docs/reference/configuration.md", func(flags *pflag.FlagSet) { config.Flags(flags) })
}

// program describes watchtower to the shared operator commands.
func program(stderr io.Writer) operator.Program {
	return operator.Program{
		Name: "watchtower", Settings: settings, Models: app.Models(), Stderr: stderr,
		Resolve: func(cmd *cobra.Command) (config.Config, error) {
			c, _, err := resolve(cmd)
			return c, err
		},
		Shown: func(cmd *cobra.Command) ([]config.Setting, error) {
			_, shown, err := resolve(cmd)
			return shown, err
		},
		Servable: func(cmd *cobra.Command) error {
			c, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			return c.CheckServe()
		},
		Schema: func() []byte { return config.Schema("watchtower") },
	}
}

func serve(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the API and deliver transactions until stopped", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			level := new(slog.LevelVar)
			level.Set(c.Log.Level)
			return app.Serve(cmd.Context(), c, app.Options{Build: build(), Log: app.Logger(c.Log.Format, stderr, level), Level: level, Crash: app.Crash()})
		},
	}
	operator.AllSettings(cmd, func(flags *pflag.FlagSet) { config.Flags(flags) })
	return cmd
}
