package main

import (
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/operator"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/outward"
)

const forwardHelp = `Publish what clients are told of their intents to a broker, each at least once and those of
an intent in order, until stopped: TxAccepted, TxSubmitted, TxReplaced, TxReceiptUpdated,
TxConfirmed and TxFailed, in the shape of a webhook's body. It is a process of its own beside
the relayer: on the same Postgres, or on the machine where an embedded store lies. Of several
that run with one --group, one publishes, and another takes over within seconds of its death.`

func forward(p operator.Program) *cobra.Command {
	return p.Forward(operator.Forward{
		Short: "Publish what clients are told to Redis Streams or NATS JetStream", Long: forwardHelp, Topics: "which of them",
		Example: "  relayer forward --store postgres://… --to redis://localhost:6379 --topic name:TxConfirmed,TxFailed",
		As:      "relayer-events", Group: "outward",
		Of: func(log feed.Log) feed.Log { return outward.New(log) },
	})
}
