package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/api/relay"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// requestsMax is the maximum input size of one intent, in bytes: its calls' data are hex.
const requestsMax = 512 << 10

func request(stderr io.Writer) *cobra.Command {
	var client string
	cmd := &cobra.Command{
		Use: "request", Short: "Add intents to the log, for a relayer to carry out", Args: cobra.NoArgs,
		Long: "Read intents from standard input, one JSON object after the other in the format of POST\n" +
			"/v1/intents, add them to the log, and print the id and status of each. A repeated intent changes\n" +
			"nothing.\n" +
			"With an embedded store no relayer may run meanwhile; with Postgres a relayer carries them out at\n" +
			"once.",
		Example: `  echo '{"key":"order-1","chainId":42431,"pool":"hot","to":"0x…","data":"0x…"}' | relayer request --config relayer.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			return put(cmd.Context(), s, client, delivery.StorageOptions{Log: delivery.Logger(s.Delivery.Log.Format, stderr, s.Delivery.Log.Level)}, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	withSettings(cmd)
	cmd.Flags().StringVar(&client, "client", "", "the intents' client: the `id` of an API key (default: the client without an API key)")
	return cmd
}

func put(ctx context.Context, s settings.Settings, client string, o delivery.StorageOptions, in io.Reader, out io.Writer) (err error) {
	storage, err := delivery.OpenStorage(ctx, s.Delivery, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close(context.WithoutCancel(ctx))) }()
	// A new vault key is created only for an empty store: before the first intent.
	master, err := delivery.OpenMaster(ctx, s.Delivery.VaultKeyFile, storage.Log)
	if err != nil {
		return err
	}
	desk := app.Desk(s, worker.Intents{Store: storage.Log, Codec: intent.Codec(), Random: rand.Reader}, time.Now)
	if err := app.TakeWebhooks(desk, s.Webhooks, master); err != nil {
		return err
	}
	desk.Allow = app.Guard(s, storage.Log, nil, nil, time.Now, rand.Reader, o.Log).Accept
	limited := &io.LimitedReader{R: in}
	decoder := json.NewDecoder(limited)
	for n := 1; ; n++ {
		limited.N = requestsMax
		var text json.RawMessage
		if err := decoder.Decode(&text); errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		} else if err != nil {
			return fmt.Errorf("intent %d: %w", n, err)
		}
		r, err := relay.ReadRequest(text)
		if err != nil {
			return fmt.Errorf("intent %d: %w", n, err)
		}
		r.Client = client
		taken := desk.Create(ctx, []intent.Request{r}, operator.Meta())[0]
		if taken.Err != nil {
			return fmt.Errorf("intent %d, %s: %w", n, r.Key, taken.Err)
		}
		if _, err := fmt.Fprintln(out, r.ID(), taken.State.Status()); err != nil {
			return err
		}
	}
}
