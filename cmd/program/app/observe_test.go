package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// A reader that cannot get past an event is reported as stuck. A reader whose store fails at an
// event is not: nothing is wrong with that event.
func TestStuckOrInTrouble(t *testing.T) {
	away, broken := errors.New("the store is away"), errors.New("no such event")
	for _, tt := range []struct {
		err   error
		stuck bool
	}{
		{broken, true},
		{away, false},
		{fmt.Errorf("%w: %w", eventlog.ErrUnknown, io.EOF), false},
		{fmt.Errorf("append: %w", context.DeadlineExceeded), false},
	} {
		a := &App{served: newState(time.Now), Ports: Ports{
			Now: time.Now, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New("test"),
			Storage: Storage{Transient: func(err error) bool { return errors.Is(err, away) }},
		}}
		at := &eventlog.Stuck{At: 7, Err: tt.err}
		err := a.reader("reader", func(context.Context) error { return at })(t.Context())
		if halted := len(a.served.allHalted()) > 0; halted != tt.stuck || (err == nil) != tt.stuck {
			t.Errorf("%v: told of as stuck %v, returned %v", tt.err, halted, err)
		}
	}
}
