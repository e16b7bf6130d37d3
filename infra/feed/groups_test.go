package feed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// thief takes a group away from whoever holds it, as happens when a process stood
// still for longer than its claim lasts.
type thief struct {
	feed.Groups

	held    atomic.Uint64
	refused atomic.Int32
}

func (g *thief) Claim(ctx context.Context, group, holder string, ttl time.Duration) (consumer.Claim, bool, error) {
	c, held, err := g.Groups.Claim(ctx, group, holder, ttl)
	if held {
		g.held.Store(c.Token)
	}
	return c, held, err
}

func (g *thief) Save(ctx context.Context, group string, token uint64, to event.Position) error {
	err := g.Groups.Save(ctx, group, token, to)
	if errors.Is(err, consumer.ErrSuperseded) {
		g.refused.Add(1)
	}
	return err
}

func (g *thief) steal(t *testing.T, group string) {
	t.Helper()
	must(t, g.Yield(soon(t), group, g.held.Load()))
	if _, held, err := g.Groups.Claim(soon(t), group, "thief", time.Minute); !held || err != nil {
		t.Fatalf("not stolen: %v", err)
	}
}

// outage fails to park a few times.
type outage struct {
	feed.Groups

	left atomic.Int32
}

func (g *outage) Park(ctx context.Context, group string, token uint64, p consumer.Parked) error {
	if g.left.Add(-1) >= 0 {
		return errors.New("the database is away")
	}
	return g.Groups.Park(ctx, group, token, p)
}
