package main

import (
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/whole"
)

// withState is a flag of forward.
const withState = "with-state"

const forwardHelp = `Publish the log's events to a broker, each at least once and in order within a stream,
until stopped. It runs as a process beside the service: on the same Postgres, or on the
machine with the embedded store. If several processes run with one --group, one of them
publishes, and another takes over within seconds after a crash.

Events go to the Redis stream or the NATS JetStream subject that --as names; a NATS stream
is created if none has the subject. See docs/howto/watermill.md for a message's contents.`

func forward(p operator.Program) *cobra.Command {
	cmd := p.Forward(operator.Forward{
		Short: "Publish the log's events to Redis Streams or NATS JetStream", Long: forwardHelp, Topics: "which events",
		Example: "  watchtower forward --store postgres://… --to redis://localhost:6379\n  watchtower forward --store postgres://… --to nats://localhost:4222 --topic name:tx.mined.",
		As:      "watchtower-events", Group: "forward",
		Of: func(cmd *cobra.Command, log feed.Log) (feed.Log, error) {
			with, err := cmd.Flags().GetBool(withState)
			if with {
				log = whole.New(log)
			}
			return log, err
		},
	})
	cmd.Flags().Bool(withState, false, "messages about a transaction carry its state, so that no look-up is needed: {\"data\": the event, \"transaction\": the state}")
	return cmd
}
