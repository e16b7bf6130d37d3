// Command watchtower delivers signed transactions. It holds no key and links no signing code.
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
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
)

// Set at build time by -ldflags "-X main.version=…".
var version, gitSHA, buildTimestamp string //nolint:gochecknoglobals // the linker writes them, nobody else

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "watchtower:", strings.TrimPrefix(err.Error(), "watchtower: ")) // the client's errors have this prefix
		stop()
		os.Exit(exitCode(err)) //nolint:gocritic // the deferred calls have run
	}
}

const (
	exitFailed = 1
	exitUsage  = 2 // also: a verification could not finish
)

func exitCode(err error) int {
	var problems config.Problems
	var unchecked operator.Unchecked
	if errors.As(err, &problems) || errors.As(err, &unchecked) {
		return exitUsage
	}
	return exitFailed
}

func build() app.Build {
	return app.Build{Version: version, GitSHA: gitSHA, Timestamp: buildTimestamp}.Complete()
}

func command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "watchtower",
		Short:         "Deliver signed transactions exactly once, or report the exact reason why not",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	p := program(stderr)
	root.AddCommand(remote.Transactions(service(), "watchtower"), remote.Groups(service(), "watchtower"))
	root.AddCommand(serve(stderr), p.Migrate(), p.Keys(), forward(p), p.Consumers(), p.Verify(), p.Archive(), p.Projections(), p.Audit(), p.Tail(), p.Configuration(), versionCommand())
	operator.Called(root)
	return root
}

// service is the listener that clients' commands call.
func service() remote.Listener {
	return remote.Listener{Name: "the service", Variable: "WATCHTOWER_URL", Standard: "http://127.0.0.1:8420", Keys: []string{"WATCHTOWER_API_KEY"}}
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
	config.Flags(cmd.Flags())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build()
			known := strings.Fields(strings.Join([]string{"watchtower", b.Version, b.GitSHA, b.Timestamp}, " "))
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(known, " "))
			return err
		},
	}
}
