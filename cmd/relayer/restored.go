package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

const restoreHelp = "A restored relayer is halted: it does not know what it has paid since the backup, and would pay\n" +
	"again. An operator looks, and ends the halt with relayer safeguards resume.\n"

// halted stops a relayer whose store was restored. Intents that the backup has as waiting may have been
// paid after it, and intents that came after it are unknown, so that a client's repetition is a new one.
func halted(ctx context.Context, log port.Store, b embedded.Backup) error {
	return halt(ctx, log, fmt.Sprintf("restored from a backup of %s (position %d): payments after it are unknown to this log", b.At.UTC().Format(time.RFC3339), b.Head))
}

func halt(ctx context.Context, log port.Store, reason string) error {
	h := handler.Handler[safeguard.State, safeguard.Command, safeguard.Event]{Store: log, Codec: safeguard.Codec(), Random: rand.Reader}
	meta := operator.Meta()
	_, err := h.Do(ctx, safeguard.Stream, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: meta.Actor, Reason: reason, At: time.Now()}, meta)
	return err
}

// restored is the command "restored", for stores that servers restore.
func restored(p operator.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "restored", Short: "Halt the relayer of a restored Postgres or EventStoreDB, before it starts", Args: cobra.NoArgs,
		Long: "Halt the relayer whose Postgres or EventStoreDB was restored from a backup, before it starts.\n" +
			"It does not know what it has paid since the backup, and would pay again. restore does the same\n" +
			"for an embedded store. An operator looks, and ends the halt with relayer safeguards resume: see\n" +
			"docs/howto/backup.md.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			return p.WithStorage(cmd, c, func(ctx context.Context, s delivery.Storage, _ *slog.Logger) error {
				head, err := s.Log.Head(ctx)
				if err != nil {
					return err
				}
				return halt(ctx, s.Log, fmt.Sprintf("restored from a backup that ends at position %d: payments after it are unknown to this log", head))
			})
		},
	}
	p.Settings(cmd)
	return cmd
}
