package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
)

// controlVar names the control socket of a profiled service.
const controlVar = "BENCH_CONTROL"

// serveProfiled is "watchtower serve" in a process of this program, with a CPU profiler
// controlled by the benchmark. The service's own profiler takes a fixed number of seconds, and a
// profile of the benchmark would include its generator and its chain.
func serveProfiled(ctx context.Context, args []string, stderr io.Writer) (err error) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, _, err := config.Resolve(flags, os.Environ(), os.ReadFile)
	if err != nil {
		return err
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "unix", os.Getenv(controlVar))
	if err != nil {
		return fmt.Errorf("%s: %w", controlVar, err)
	}
	orders := &http.Server{Handler: profiler()} //nolint:gosec // the one client is ours
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		orders.Serve(socket) //nolint:errcheck,gosec // always that it was closed
	}()
	defer func() {
		err = errors.Join(err, orders.Close())
		<-ended
	}()
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: c.Log.Level}))
	return app.Serve(ctx, c, app.Options{Log: log})
}

// profiler starts a profile at /start, and returns it at /stop.
func profiler() http.Handler {
	var taken bytes.Buffer
	orders := http.NewServeMux()
	orders.HandleFunc("POST /start", func(w http.ResponseWriter, _ *http.Request) {
		taken.Reset()
		if err := pprof.StartCPUProfile(&taken); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	orders.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		pprof.StopCPUProfile()
		w.Write(taken.Bytes()) //nolint:errcheck,gosec // whoever has gone does not want it
	})
	return orders
}

// control sends these commands. The zero control does nothing.
type control struct {
	socket string
	dir    string // folder for profiles
	engine string
}

func (c control) start(ctx context.Context) error {
	if c.socket == "" {
		return nil
	}
	_, err := c.order(ctx, "/start")
	return err
}

// save ends a profile and stores it in a file with that name.
func (c control) save(ctx context.Context, name string) error {
	if c.socket == "" {
		return nil
	}
	taken, err := c.order(ctx, "/stop")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, c.engine+"-"+name+".pprof"), taken, 0o644) //nolint:gosec // for everybody
}

// profiled runs a part of this process, and stores its profile likewise.
func (b *bench) profiled(engine, name string, work func() error) (err error) {
	if b.profile == "" {
		return work()
	}
	f, err := os.Create(filepath.Join(b.profile, engine+"-"+name+".pprof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return work()
}

func (c control) order(ctx context.Context, path string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://profiler"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("profiler: %s: %s", res.Status, body)
	}
	return body, err
}
