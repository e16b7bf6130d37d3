//go:build chaos

package main_test

import (
	"context"
	"testing"
	"time"
)

// lasting gives a world more time than a test usually takes.
func (w *world) lasting(t *testing.T, long time.Duration) *world {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	w.ctx = w.history.Record(ctx)
	return w
}

// Row 28: no node can be reached for ten minutes.
func TestTenMinutesWithoutNodes(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		const outage = 10 * time.Minute
		allEndpointsDown(t, newWorld(t, store, "--block-time", "1").lasting(t, outage+patience), outage)
	})
}

// Row 30: 64 blocks are replaced, with two transactions in each.
func TestDeepReorg(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		reorg(t, newWorld(t, store, "--no-mining").lasting(t, 2*patience), 64)
	})
}
