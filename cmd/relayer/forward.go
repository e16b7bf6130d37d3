package main

import (
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/outward"
)

const forwardHelp = `Publish the public events of intents to a broker, until stopped: TxAccepted, TxSubmitted,
TxReplaced, TxReceiptUpdated, TxConfirmed and TxFailed, in the format of a webhook's body.
Each event is published at least once, and the events of an intent in order. Run it as a
separate process beside the relayer: on the same Postgres, or on the machine with the embedded
store. Of several processes with the same --group, one publishes; another takes over within
seconds of its death.`

func forward(p operator.Program) *cobra.Command {
	return p.Forward(operator.Forward{
		Short: "Publish the public events of intents to Redis Streams or NATS JetStream", Long: forwardHelp, Topics: "the events to publish",
		Example: "  relayer forward --store postgres://… --to redis://localhost:6379 --topic name:TxConfirmed,TxFailed",
		As:      "relayer-events", Group: "outward",
		Of: func(cmd *cobra.Command, log feed.Log) (feed.Log, error) {
			s, _, err := resolve(cmd)
			return outward.New(log, s.Front.MessageData), err
		},
	})
}
