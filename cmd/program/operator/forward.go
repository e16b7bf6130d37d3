package operator

import (
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/infra/broker"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// Forward describes a program's "forward" command.
type Forward struct {
	Short, Long, Topics, Example string
	As, Group                    string // default topic and consumer group
	// Of returns the view of the log to forward; nil forwards the log itself.
	Of func(*cobra.Command, feed.Log) (feed.Log, error)
}

// toVar keeps a broker's password out of the process list. It lacks the prefix of the settings,
// as it is not a setting: other commands would refuse it.
const toVar = "FORWARD_TO"

// forwarding holds the flags.
type forwarding struct {
	to, topic, as, group, metrics string
	partitions                    int
	keep                          int64
	fromEnd                       bool
}

// Forward is the command "forward", which publishes events to a broker.
func (p Program) Forward(what Forward) *cobra.Command {
	var f forwarding
	cmd := &cobra.Command{
		Use: "forward --to URL", Short: what.Short, Args: cobra.NoArgs, Long: what.Long, Example: what.Example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			if f.to == "" {
				f.to = os.Getenv(toVar)
			}
			return f.run(cmd, c, what.Of, p.logger(c))
		},
	}
	p.Settings(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "the broker: redis://…, rediss://…, nats://… or tls://… (NATS with TLS); or in "+toVar)
	flags.StringVar(&f.topic, "topic", feed.All, what.Topics+": all, stream:PREFIX,… or name:PREFIX,…")
	flags.StringVar(&f.as, "as", what.As, "the stream or subject to publish to")
	flags.IntVar(&f.partitions, "partitions", 0, "the number of subjects, AS-0, AS-1, …, to spread streams over; 0 is AS alone")
	flags.StringVar(&f.group, "group", what.Group, "the consumer group; a new group publishes all events again")
	flags.Int64Var(&f.keep, "keep", 0, "the approximate number of messages that the broker keeps of each stream; 0 keeps all")
	flags.BoolVar(&f.fromEnd, "from-end", false, "a new group begins with the next event instead of the first")
	flags.StringVar(&f.metrics, "metrics", "", "where to serve /metrics, for monitors that name an IP address, localhost or one of api.hosts; empty is nowhere")
	return cmd
}

func (f forwarding) run(cmd *cobra.Command, c config.Config, of func(*cobra.Command, feed.Log) (feed.Log, error), log *slog.Logger) (err error) {
	ctx := cmd.Context()
	if f.to == "" {
		return errors.New("forward: --to must name a broker")
	}
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
	events := feed.Log(source.Log)
	if of != nil {
		if events, err = of(cmd, events); err != nil {
			return err
		}
	}
	forwarder, err := feed.NewForwarder(
		feed.Options{Log: events, Groups: source.Groups, Group: f.group, FromEnd: f.fromEnd, Logger: log},
		feed.Forwarding{Topic: f.topic, Publisher: publisher, To: f.as, Partitions: f.partitions})
	if err != nil {
		return err
	}
	end, err := app.ServeFigures(ctx, f.metrics, webguard.Guard{Hosts: c.API.Hosts, HostsSetting: "api.hosts", Origins: c.API.Origins, OriginsSetting: "api.origins"}, forwarder)
	if err != nil {
		return err
	}
	defer end()
	log.Info("forwarding", "store", c.Store.String(), "to", config.NewSecret(f.to), "topic", f.topic, "as", f.as, "group", f.group)
	return forwarder.Run(ctx)
}
