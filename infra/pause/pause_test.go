package pause

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A pause takes as long as asked, and ends with its context.
func TestFor(t *testing.T) {
	for name, wait := range map[string]func(context.Context, time.Duration){"For": For, "byTimer": byTimer} {
		for _, d := range []time.Duration{-time.Second, 0, 1, time.Millisecond, 12 * time.Millisecond} {
			began := time.Now()
			if wait(t.Context(), d); time.Since(began) < d {
				t.Errorf("%s: a pause of %s took %s", name, d, time.Since(began))
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); wait(ctx, time.Hour) }()
		stop()
		<-ended
		wait(ctx, time.Hour)
	}
}
