package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
)

// delivery is the delivery service in this process.
type delivery struct {
	url, metricsURL string
	ended           <-chan struct{}
	stop            func() error // waits, and returns the service's error
}

// startDelivery returns once the service listens.
func startDelivery(ctx context.Context, o options, c *devChain, stderr io.Writer) (*delivery, error) {
	settings, err := configuration(o, c)
	if err != nil {
		return nil, err
	}
	// A signal does not stop the service directly: it must stop before the chain.
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var failure error
	ended, listening := make(chan struct{}), make(chan [2]net.Addr, 1)
	go func() {
		defer close(ended)
		failure = app.Serve(serving, settings, app.Options{
			Build:     app.Build{Version: "devnet"},
			Log:       slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.level})),
			Listening: func(api, metrics net.Addr) { listening <- [2]net.Addr{api, metrics} },
		})
	}()
	s := &delivery{ended: ended, stop: func() error {
		cancel()
		<-ended
		return failure
	}}
	select {
	case at := <-listening:
		s.url, s.metricsURL = "http://"+at[0].String(), "http://"+at[1].String()
		return s, nil
	case <-ended:
		cancel()
		return nil, failure
	}
}

// configuration is the service's configuration. The environment is not read: all state here is
// new.
func configuration(o options, c *devChain) (config.Config, error) {
	store := "embedded::memory:"
	if o.data != "" {
		store = "embedded:" + filepath.Join(o.data, "service")
	}
	flags := pflag.NewFlagSet("service", pflag.ContinueOnError)
	config.Flags(flags)
	err := flags.Parse([]string{
		"--listen=" + o.listen,
		"--metrics-listen=" + o.metrics,
		"--store=" + store,
		fmt.Sprintf("--chains=%d=%s", chainID, c.url),
		// Neither chain forks by itself. anvil's finalized tag lags 64 blocks.
		fmt.Sprintf("--confirmations=%d=2", chainID),
		// anvil drops a transaction whose nonce is ahead at the next block.
		"--scheduler-rebroadcast-min=" + blockTime.String(),
	})
	if err != nil {
		return config.Config{}, err
	}
	settings, _, err := config.Resolve(flags, nil, nil)
	return settings, err
}
