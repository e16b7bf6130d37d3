package main

import (
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/operator"
)

const forwardHelp = `Publish the log's events to a broker, each at least once and those of a stream in order,
until stopped. It is a process of its own beside the service: on the same Postgres, or
on the machine where an embedded store lies. Of several that run with one --group, one
publishes, and another takes over within seconds of its death.

Events go to the Redis stream or the NATS JetStream subject that --as names; a NATS stream
is made where none has the subject. See docs/watermill.md for what a message holds.`

func forward(p operator.Program) *cobra.Command {
	return p.Forward(operator.Forward{
		Short: "Publish the log's events to Redis Streams or NATS JetStream", Long: forwardHelp, Topics: "which events",
		Example: "  watchtower forward --store postgres://… --to redis://localhost:6379\n  watchtower forward --store postgres://… --to nats://localhost:4222 --topic name:tx.mined.",
		As:      "watchtower-events", Group: "forward",
	})
}
