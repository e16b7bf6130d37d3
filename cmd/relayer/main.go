// Command relayer accepts intents over HTTP and carries them out: it holds keys, signs, and
// delivers the signed transactions. It includes all of command watchtower in the same process.
// docs/reference/relayer.md describes its use and its limits.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/check"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
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
	status := terminal.Run(ctx, command(os.Stdin, os.Stdout, os.Stderr))
	stop()
	os.Exit(int(status))
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "relayer", Short: "Carry out intents: sign them, and deliver each exactly once",
		Long: "Carry out intents: sign them, and deliver each exactly once.\n\n" +
			"Commands for clients and operators call a running relayer (--url, --context). Commands for the\n" +
			"store open the store of the configuration themselves (--config, --store).",
	}
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	p := program(stderr)
	operator.Group(root, operator.Clients, cli.Intents(), cli.Webhooks(), cli.Listen(), remote.Transactions(deliveryAPI(), p.Name), remote.Groups(deliveryAPI(), p.Name), remote.Tail(deliveryAPI(), p.Name), remote.Contexts(p.Name))
	operator.Group(root, operator.Operators, cli.Operators()...)
	operator.Group(root, operator.Service, serve(stderr), examine(stderr), p.Doctor("delivery-doctor [HASH]..."), check.Command(deliveryAPI(), cli.Internal(), p.Name), remote.HealthCheck(deliveryAPI(), p.Name), p.Configuration(), p.Version(build()))
	operator.Group(root, operator.Store, request(stderr), p.Audit(), p.Verify(), p.Projections(), p.Archive(), p.Backup(), p.Restore(), restored(p), p.Keys(), p.Migrate(), p.Consumers(), forward(p))
	operator.Finish(root)
	return root
}

// deliveryAPI is the listener of delivery's API, which a relayer serves too.
func deliveryAPI() remote.Listener {
	return remote.Listener{Name: "delivery's API (listen)", Variable: "WATCHTOWER_URL", Standard: "http://127.0.0.1:8420", Keys: []string{"RELAYER_API_KEY", "WATCHTOWER_API_KEY"}, Member: remote.Delivery}
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
		Audited: history.Kinds(),
		Name:    "relayer", Models: append(delivery.Models(), intents.Model(intent.Codec()), intents.TermsModel(intent.Codec()), lanes.Model(lane.Codec())), Stderr: stderr,
		Settings: withSettings, Judges: judges, VerifyHelp: verifyHelp,
		Resolve: func(cmd *cobra.Command) (config.Config, error) {
			s, _, err := resolve(cmd)
			return s.Delivery, err
		},
		Shown: func(cmd *cobra.Command) ([]config.Setting, error) {
			_, shown, err := resolve(cmd)
			return shown, err
		},
		Servable: func(cmd *cobra.Command) error {
			s, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			return errors.Join(s.Delivery.CheckServe(), s.CheckServe())
		},
		Schema:   settings.Schema,
		Restored: halted, RestoreHelp: restoreHelp,
		Forms: subjects, FormsHelp: "an intent's id, CHAIN/SIGNER[/NONCEKEY] of a lane, " +
			"signer/ADDRESS, budget (of a chain), safeguards, ",
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
	operator.AllSettings(cmd, settings.Flags)
	return cmd
}

func build() delivery.Build {
	return delivery.Build{Version: version, GitSHA: gitSHA, Timestamp: buildTimestamp}.Complete()
}
