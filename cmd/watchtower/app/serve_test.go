package app_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
)

func settings(t *testing.T, args ...string) config.Config {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Flags(flags)
	args = append(args, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--store", "embedded::memory:")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Resolve(flags, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Being stopped is no failure, however early; and what was opened is closed.
func TestStopped(t *testing.T) {
	c := settings(t, "--chains", "1=http://127.0.0.1:9")
	options := app.Options{Log: slog.New(slog.DiscardHandler)}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := app.Serve(stopped, c, options); err != nil {
		t.Errorf("stopped before it began: %v", err)
	}

	running, stop := context.WithCancel(t.Context())
	options.Listening = func(public, internal net.Addr) { stop() }
	if err := app.Serve(running, c, options); err != nil {
		t.Errorf("stopped as it began to listen: %v", err)
	}
}

// A service whose nodes are all away still serves: it takes on what it is given.
func TestNodesAway(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listening := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, settings(t, "--chains", "1=http://127.0.0.1:9"), app.Options{
			Log: slog.New(slog.DiscardHandler), Listening: func(public, _ net.Addr) { listening <- public },
		})
	}()
	res, err := http.Get("http://" + (<-listening).String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close() //nolint:errcheck,gosec // only the code matters
	if res.StatusCode != http.StatusOK {
		t.Errorf("/readyz answers %d", res.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoChain(t *testing.T) {
	if err := app.Serve(t.Context(), settings(t), app.Options{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("served without a chain")
	}
}
