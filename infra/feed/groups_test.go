package feed_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// thief takes a group from its holder, as happens when a process is stopped for longer than its
// claim lasts.
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

func (g *thief) Save(ctx context.Context, group string, token uint64, to eventlog.Position) error {
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

// outage fails the first calls of Park.
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

// mute cannot yield a claim, and reports each saved checkpoint.
type mute struct {
	feed.Groups

	saved chan eventlog.Position
}

func (g *mute) Yield(context.Context, string, uint64) error {
	return errors.New("the database is away")
}

func (g *mute) Save(ctx context.Context, group string, token uint64, to eventlog.Position) error {
	defer func() { g.saved <- to }()
	return g.Groups.Save(ctx, group, token, to)
}

// cut is a log whose first subscription fails after the first events, once they were received.
type cut struct {
	feed.Log

	seen chan struct{}
	done atomic.Bool
}

func (l *cut) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for b, err := range l.Log.Subscribe(ctx, after, f, max) {
			if !yield(b, err) {
				return
			}
			if len(b.Events) > 0 && l.done.CompareAndSwap(false, true) {
				select {
				case <-l.seen:
				case <-ctx.Done():
				}
				yield(eventlog.Batch{}, errors.New("the connection broke"))
				return
			}
		}
	}
}

// headless fails on the first call of Head.
type headless struct {
	feed.Log

	asked atomic.Bool
}

func (l *headless) Head(ctx context.Context) (eventlog.Position, error) {
	if l.asked.CompareAndSwap(false, true) {
		return 0, errors.New("the connection broke")
	}
	return l.Log.Head(ctx)
}

// A new group begins at the end of the log even if the first call of Head fails.
func TestFromEndAfterTrouble(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 5)
	o := s.options("g")
	o.FromEnd, o.Log = true, &headless{Log: s.db.Log()}
	_, messages := s.subscribe(o, feed.All)
	eventually(t, "the group begins", func() bool {
		select {
		case m := <-messages:
			t.Fatalf("version %s comes, which is older than the group", m.Metadata[feed.KeyVersion])
		default:
		}
		return s.position("g", feed.All) == 5
	})
	s.happened("tx-a", 5, 1)
	if m, o := next(t, messages); o.Version != 6 {
		t.Errorf("version %d comes", o.Version)
	} else {
		m.Ack()
	}
}

// A new group begins at the end of the log once. After an error it continues with its claim
// instead.
func TestFromEndOnce(t *testing.T) {
	s := newStage(t)
	o := s.options("g")
	groups := &mute{s.feed.Groups(), make(chan eventlog.Position, 100)}
	log := &cut{Log: s.db.Log(), seen: make(chan struct{})}
	o.FromEnd, o.Log, o.Groups = true, log, groups
	_, messages := s.subscribe(o, feed.All)
	<-groups.saved // it has begun, with no events
	s.happened("tx-a", 0, 1)
	first, _ := next(t, messages)
	close(log.seen)
	if again, o := next(t, messages); o.Version != 1 || again.UUID != first.UUID {
		t.Errorf("version %d comes, and what was not acked does not", o.Version)
	}
}
