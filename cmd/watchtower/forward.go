package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/infra/broker"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

const forwardHelp = `Publish the log's events to a broker, each at least once and those of a stream in order,
until stopped. It is a process of its own beside the service: on the same Postgres, or
on the machine where an embedded store lies. Of several that run with one --group, one
publishes, and another takes over within seconds of its death.

Events go to the Redis stream or the NATS JetStream subject that --as names; a NATS stream
is made where none has the subject. See docs/watermill.md for what a message holds.`

// toVar keeps a broker's password out of the list of processes. It has not the prefix of
// the settings, for it is none: other commands would refuse it.
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
		Use: "forward --to URL", Short: "Publish the log's events to Redis Streams or NATS JetStream", Args: cobra.NoArgs, Long: forwardHelp,
		Example: "  watchtower forward --store postgres://… --to redis://localhost:6379\n  watchtower forward --store postgres://… --to nats://localhost:4222 --topic name:tx.mined.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			if f.to == "" {
				f.to = os.Getenv(toVar)
			}
			return f.run(cmd.Context(), c, stderr)
		},
	}
	settings(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "the broker: redis://…, rediss://…, nats://… or tls://… (NATS with TLS); or in "+toVar)
	flags.StringVar(&f.topic, "topic", feed.All, "which events: all, stream:PREFIX,… or name:PREFIX,…")
	flags.StringVar(&f.as, "as", "watchtower-events", "the stream or subject to publish to")
	flags.IntVar(&f.partitions, "partitions", 0, "spread streams over so many subjects, AS-0, AS-1, …; 0 is AS alone")
	flags.StringVar(&f.group, "group", "forward", "the consumer group; another one publishes everything anew")
	flags.Int64Var(&f.keep, "keep", 0, "about how many messages the broker keeps of each stream; 0 keeps all")
	flags.BoolVar(&f.fromEnd, "from-end", false, "a new group begins with what comes from now on")
	flags.StringVar(&f.metrics, "metrics", "", "where to serve /metrics; empty is nowhere")
	return cmd
}

func (f forwarding) run(ctx context.Context, c config.Config, stderr io.Writer) (err error) {
	if f.to == "" {
		return errors.New("forward: --to names no broker")
	}
	log := logger(c, stderr)
	app.LogRedis(log)
	source, err := app.OpenFeed(ctx, c, log)
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
		feed.Options{Log: source.Log, Groups: source.Groups, Group: f.group, FromEnd: f.fromEnd, Logger: log},
		feed.Forwarding{Topic: f.topic, Publisher: publisher, To: f.as, Partitions: f.partitions})
	if err != nil {
		return err
	}
	end, err := app.ServeFigures(ctx, f.metrics, forwarder)
	if err != nil {
		return err
	}
	defer end()
	log.Info("forwarding", "store", c.Store.String(), "to", config.NewSecret(f.to), "topic", f.topic, "as", f.as, "group", f.group)
	return forwarder.Run(ctx)
}
