// Command relayer accepts intents over HTTP and carries them out: it holds keys, signs, and
// delivers the signed transactions. It includes all of command watchtower in the same process.
// docs/reference/relayer.md describes its use and its limits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/cli"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/history"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

// Set at build time by -ldflags "-X main.version=…".
var version, gitSHA, buildTimestamp string //nolint:gochecknoglobals // the linker writes them, nobody else

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(os.Stdin, os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "relayer:", err)
		stop()
		os.Exit(exitCode(err)) //nolint:gocritic // the deferred calls have run
	}
}

const (
	exitFailed = 1
	exitUsage  = 2 // also: the command could not finish
)

func exitCode(err error) int {
	var problems config.Problems
	var unchecked operator.Unchecked
	if errors.As(err, &problems) || errors.As(err, &unchecked) {
		return exitUsage
	}
	return exitFailed
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "relayer", Short: "Carry out intents: sign them, and deliver each exactly once",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	p := program(stderr)
	root.AddCommand(serve(stderr), request(stderr), forward(p), p.Migrate(), p.Keys(), p.Consumers(), p.Verify(), p.Projections(), p.Archive(), p.Audit(), p.Tail(), p.Configuration(), versionCommand())
	root.AddCommand(examine(stderr))
	root.AddCommand(cli.Commands()...)
	root.AddCommand(remote.Transactions(deliveryAPI(), "relayer"), remote.Groups(deliveryAPI(), "relayer"))
	operator.Called(root)
	return root
}

// deliveryAPI is the listener of delivery's API, which a relayer serves too.
func deliveryAPI() remote.Listener {
	return remote.Listener{Name: "delivery's API (listen)", Variable: "WATCHTOWER_URL", Standard: "http://127.0.0.1:8420", Keys: []string{"RELAYER_API_KEY", "WATCHTOWER_API_KEY"}}
}

func resolve(cmd *cobra.Command) (settings.Settings, []config.Setting, error) {
	return settings.Resolve(cmd.Flags(), os.Environ(), os.ReadFile)
}

// withSettings adds the configuration's flags to a command.
func withSettings(cmd *cobra.Command) {
	operator.Settings(cmd, "relayer", "docs/reference/relayer.md", settings.Flags)
}

// program describes the relayer to the shared operator commands.
func program(stderr io.Writer) operator.Program {
	return operator.Program{
		Audited: history.Kinds(), AuditedHelp: history.Help,
		Name: "relayer", Models: append(delivery.Models(), intents.Model(intent.Codec()), intents.TermsModel(intent.Codec()), lanes.Model(lane.Codec())), Stderr: stderr,
		Settings: withSettings, Judges: judges, VerifyHelp: verifyHelp,
		Resolve: func(cmd *cobra.Command) (config.Config, error) {
			s, _, err := resolve(cmd)
			return s.Delivery, err
		},
		Shown: func(cmd *cobra.Command) ([]config.Setting, error) {
			_, shown, err := resolve(cmd)
			return shown, err
		},
	}
}

func serve(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Accept and carry out intents, and serve the watchtower's API, until stopped", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			level := new(slog.LevelVar)
			level.Set(s.Delivery.Log.Level)
			return app.Serve(cmd.Context(), s, app.Options{
				Options: delivery.Options{Build: build(), Log: delivery.Logger(s.Delivery.Log.Format, stderr, level), Level: level, Crash: delivery.Crash()},
				Environ: os.Environ(),
			})
		},
	}
	settings.Flags(cmd.Flags())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build()
			known := strings.Fields(strings.Join([]string{"relayer", b.Version, b.GitSHA, b.Timestamp}, " "))
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(known, " "))
			return err
		},
	}
}

func build() delivery.Build {
	return delivery.Build{Version: version, GitSHA: gitSHA, Timestamp: buildTimestamp}.Complete()
}
