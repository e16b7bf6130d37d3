package simulation

import (
	"context"
	"fmt"
	"time"

	relay "github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/simulation/memory"
)

// Notices is a replica's access to the webhook queue.
func (s storage) Notices(p notice.Policy) relay.NoticeRows { return noticed{s, p} }

type noticed struct {
	storage
	policy notice.Policy
}

func (q noticed) rows() memory.Notices { return q.world.store.Notices(q.policy) }

func (q noticed) Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error {
	return told(ctx, q.storage, fmt.Sprintf("enqueue %s %d %d", reader, from, to), func(ctx context.Context) error {
		return q.rows().Enqueue(ctx, reader, from, to, news)
	})
}

func (q noticed) Lease(ctx context.Context, c notice.Claim) ([]notice.Sending, time.Duration, error) {
	type answer struct {
		due   []notice.Sending
		until time.Duration
	}
	a, err := asked(ctx, q.storage, writing, fmt.Sprintf("lease notices %d", c.Limit), func(ctx context.Context) (a answer, err error) {
		a.due, a.until, err = q.rows().Lease(ctx, c)
		return a, err
	})
	return a.due, a.until, err
}

func (q noticed) Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error) {
	name := fmt.Sprintf("report %s %s %d", reports[0].Key.Endpoint, reports[0].Key.MessageID(), len(reports))
	return asked(ctx, q.storage, writing, name, func(ctx context.Context) ([]notice.Endpoint, error) {
		for _, r := range reports {
			q.world.hooks.reported(r)
		}
		disabled, err := q.rows().Done(ctx, holder, reports)
		for _, e := range disabled {
			q.world.hooks.disabled(e.ID)
		}
		return disabled, err
	})
}

func (q noticed) CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error {
	return told(ctx, q.storage, fmt.Sprintf("carry out %d %d", from, to), func(ctx context.Context) error {
		for _, wish := range wishes {
			if w, is := wish.(notice.WasDisabled); is && w.Reason == notice.Operator {
				q.world.hooks.disabled(w.Endpoint)
			}
		}
		return q.rows().CarryOut(ctx, reader, from, to, wishes, news)
	})
}

func (q noticed) Sweep(ctx context.Context, turn string, most int) (string, bool, error) {
	type answer struct {
		client string
		found  bool
	}
	a, err := asked(ctx, q.storage, writing, fmt.Sprintf("sweep notices %q %d", turn, most), func(ctx context.Context) (a answer, err error) {
		a.client, a.found, err = q.rows().Sweep(ctx, turn, most)
		return a, err
	})
	return a.client, a.found, err
}

func (q noticed) Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (int, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("count %s %s %d", endpoint, stage, most), func(ctx context.Context) (int, error) {
		return q.rows().Count(ctx, endpoint, stage, most)
	})
}

func (q noticed) Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) ([]notice.Notice, error) {
	name := fmt.Sprintf("dead %s %s %d", endpoint, after.MessageID(), limit)
	return asked(ctx, q.storage, reading, name, func(ctx context.Context) ([]notice.Notice, error) {
		return q.rows().Dead(ctx, endpoint, after, limit)
	})
}

func (q noticed) Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error) {
	type answer struct {
		endpoint notice.Endpoint
		known    bool
	}
	a, err := asked(ctx, q.storage, reading, "endpoint "+id.String(), func(ctx context.Context) (a answer, err error) {
		a.endpoint, a.known, err = q.rows().Endpoint(ctx, id)
		return a, err
	})
	return a.endpoint, a.known, err
}

func (q noticed) Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) ([]notice.Endpoint, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("endpoints %s %d", after, limit), func(ctx context.Context) ([]notice.Endpoint, error) {
		return q.rows().Endpoints(ctx, client, after, limit)
	})
}

func (q noticed) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	return asked(ctx, q.storage, writing, "forget notices", func(ctx context.Context) (int, error) { return q.rows().Forget(ctx, before, limit) })
}

func (q noticed) Depth(ctx context.Context) (notice.Depth, error) {
	return asked(ctx, q.storage, reading, "depth of notices", q.rows().Depth)
}

func (q noticed) Queued(ctx context.Context, client string, most int) (int, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("queued deliveries %d", most), func(ctx context.Context) (int, error) {
		return q.rows().Queued(ctx, client, most)
	})
}

func (q noticed) InUse(ctx context.Context, client string, most int) ([]notice.EndpointID, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("webhooks in use %d", most), func(ctx context.Context) ([]notice.EndpointID, error) {
		return q.rows().InUse(ctx, client, most)
	})
}
