package app_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
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

// Being stopped is not an error, however early; and everything opened is closed.
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

// The service logs when it is told to stop, and again when all is closed, with the duration.
func TestStopIsLogged(t *testing.T) {
	var moved atomic.Int64 // of the clock
	log := new(said)
	log.each = func(line string) {
		if strings.Contains(line, `"msg":"stopping"`) {
			moved.Store(int64(7 * time.Second))
		}
	}
	began := time.Unix(1_800_000_000, 0)
	running, stop := context.WithCancel(t.Context())
	err := app.Serve(running, settings(t, "--chains", "1=http://127.0.0.1:9", "--shutdown-grace", "11s"), app.Options{
		Log: slog.New(slog.NewJSONHandler(log, nil)), Listening: func(net.Addr, net.Addr) { stop() },
		Now: func() time.Time { return began.Add(time.Duration(moved.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Msg         string
		Grace, Took time.Duration
	}
	var last []line
	for _, text := range log.lines {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg == "stopping" || len(last) > 0 {
			last = append(last, l)
		}
	}
	if len(last) < 2 || last[0].Grace != 11*time.Second || last[len(last)-1] != (line{Msg: "stopped", Took: 7 * time.Second}) {
		t.Errorf("the log ends with %+v", last)
	}
}

// said is a log, line by line.
type said struct {
	mu    sync.Mutex
	each  func(line string)
	lines []string
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(string(b))
	s.lines = append(s.lines, string(b))
	return len(b), nil
}

// A service whose nodes are all down still serves: it accepts transactions.
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
