package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/infra/broker"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/outward"
)

const forwardHelp = `Publish what clients are told of their intents to a broker, each at least once and those of
an intent in order, until stopped: TxAccepted, TxSubmitted, TxReplaced, TxReceiptUpdated,
TxConfirmed and TxFailed, in the shape of a webhook's body. It is a process of its own beside
the relayer: on the same Postgres, or on the machine where an embedded store lies. Of several
that run with one --group, one publishes, and another takes over within seconds of its death.`

// toVar keeps a broker's password out of the list of processes.
const toVar = "FORWARD_TO"

// forwarding is what the flags say.
type forwarding struct {
	to, topic, as, group, metrics string
	partitions                    int
	keep                          int64
	fromEnd                       bool
}

func forward(stderr io.Writer) *cobra.Command {
	var f forwarding
	cmd := &cobra.Command{
		Use: "forward --to URL", Short: "Publish what clients are told to Redis Streams or NATS JetStream", Args: cobra.NoArgs, Long: forwardHelp,
		Example: "  relayer forward --store postgres://… --to redis://localhost:6379 --topic name:TxConfirmed,TxFailed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			if f.to == "" {
				f.to = os.Getenv(toVar)
			}
			return f.run(cmd.Context(), s, stderr)
		},
	}
	settings.Flags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "the broker: redis://…, rediss://…, nats://… or tls://… (NATS with TLS); or in "+toVar)
	flags.StringVar(&f.topic, "topic", feed.All, "which of them: all, stream:PREFIX,… or name:PREFIX,…")
	flags.StringVar(&f.as, "as", "relayer-events", "the stream or subject to publish to")
	flags.IntVar(&f.partitions, "partitions", 0, "spread intents over so many subjects, AS-0, AS-1, …; 0 is AS alone")
	flags.StringVar(&f.group, "group", "outward", "the consumer group; another one publishes everything anew")
	flags.Int64Var(&f.keep, "keep", 0, "about how many messages the broker keeps of each stream; 0 keeps all")
	flags.BoolVar(&f.fromEnd, "from-end", false, "a new group begins with what comes from now on")
	flags.StringVar(&f.metrics, "metrics", "", "where to serve /metrics; empty is nowhere")
	return cmd
}

func (f forwarding) run(ctx context.Context, s settings.Settings, stderr io.Writer) (err error) {
	if f.to == "" {
		return errors.New("forward: --to names no broker")
	}
	log := delivery.Logger(s.Delivery.Log.Format, stderr, s.Delivery.Log.Level)
	delivery.LogRedis(log)
	source, err := delivery.OpenFeed(ctx, s.Delivery, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	publisher, err := broker.Open(ctx, f.to, broker.Options{Keep: f.keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	forwarder, err := feed.NewForwarder(
		feed.Options{Log: outward.New(source.Log), Groups: source.Groups, Group: f.group, FromEnd: f.fromEnd, Logger: log},
		feed.Forwarding{Topic: f.topic, Publisher: publisher, To: f.as, Partitions: f.partitions})
	if err != nil {
		return err
	}
	end, err := delivery.ServeFigures(ctx, f.metrics, forwarder)
	if err != nil {
		return err
	}
	defer end()
	log.Info("forwarding", "store", s.Delivery.Store.String(), "to", config.NewSecret(f.to), "topic", f.topic, "as", f.as, "group", f.group)
	return forwarder.Run(ctx)
}
