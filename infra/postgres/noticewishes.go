package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	requeueNamed = `UPDATE work.notices n SET stage = 'queued', attempts = 0, next_at = clock_timestamp(), settled_at = NULL
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) u (endpoint, intent, seq)
WHERE n.endpoint = u.endpoint AND n.intent = u.intent AND n.seq = u.seq AND n.stage <> 'queued'`

	beginSweeps = `UPDATE work.notice_endpoints SET sweep = 'redeliver', sweep_intent = '00000000-0000-0000-0000-000000000000', sweep_seq = 0
WHERE endpoint = ANY ($1::uuid[])`
)

// CarryOut applies commands on endpoints in their order, then adds news as Enqueue does, and
// moves the reader's checkpoint, in one database transaction. It returns eventlog.ErrMoved if the
// checkpoint is not at from. Sweep applies the effect on all of an endpoint's notices. Nothing
// is redelivered to a disabled endpoint. Commands for an unknown endpoint, and the record that
// an endpoint was disabled automatically, do nothing.
//
// The number of statements grows with the number of endpoints that are disabled or enabled, and
// not with the number of commands.
func (s *Notices) CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error {
	in := newsIn(news)
	var concerned []pgtype.UUID
	for _, w := range wishes {
		concerned = append(concerned, uuidOf(notice.About(w)))
	}
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil {
				return err
			}
			f, err := lockWished(ctx, dbtx, concerned, in)
			if err != nil {
				return err
			}
			for _, w := range wishes {
				f.apply(w)
			}
			q := &pgx.Batch{}
			f.write(q)
			in.insert(q)
			t := touch(append(f.again, in.all...))
			t.endpoints = append(t.endpoints, concerned...)
			s.settle(q, t)
			return dbtx.SendBatch(ctx, q).Close()
		})
	})
}

// lockWished locks the endpoints of commands and of news, in the order of their ids, and reads
// the endpoints of the commands. An endpoint may exist by its news alone.
func lockWished(ctx context.Context, dbtx pgx.Tx, concerned []pgtype.UUID, in newsColumns) (*wishFold, error) {
	f := &wishFold{endpoints: map[notice.EndpointID]*wished{}}
	q := &pgx.Batch{}
	q.Queue(lockEndpoints, append(slices.Clone(concerned), in.endpoints...))
	in.know(q)
	q.Queue(lockedEndpoints, concerned).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Endpoint, error) { return scanEndpoint(row) })
		for _, e := range found {
			f.order = append(f.order, e.ID)
			f.endpoints[e.ID] = &wished{Endpoint: e}
		}
		return err
	})
	q.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
	err := dbtx.SendBatch(ctx, q).Close()
	f.now = f.now.UTC()
	return f, err
}

// wishFold is the effect of commands on endpoints and their notices.
type wishFold struct {
	now       time.Time
	order     []notice.EndpointID // of the endpoints, as they are locked
	endpoints map[notice.EndpointID]*wished
	again     []notice.Key // notices to queue again
}

// wished is an endpoint as commands change it.
type wished struct {
	notice.Endpoint
	// states are the states to store, one after the other: updateEndpoint begins to give
	// notices up when the stored endpoint becomes disabled, and ends that when it becomes
	// enabled. The last two have the same result as all.
	states []notice.Endpoint
	again  bool // all dead notices are to be queued again
}

func (f *wishFold) apply(wish notice.Event) {
	e, known := f.endpoints[notice.About(wish)]
	if !known {
		return
	}
	switch w := wish.(type) {
	case notice.WasDisabled:
		if w.Reason == notice.Operator {
			e.become(e.Disable(w.Reason, f.now))
		}
	case notice.WasEnabled:
		e.become(e.Enable())
	case notice.RedeliveryAsked:
		if e.Disabled != notice.Enabled {
			return
		}
		e.again = e.again || len(w.Notices) == 0
		f.again = append(f.again, w.Keys()...)
	}
}

func (e *wished) become(to notice.Endpoint) {
	disabled, was := to.Disabled != notice.Enabled, e.Disabled != notice.Enabled
	if last := len(e.states) - 1; last >= 0 && disabled == was {
		e.states[last] = to
	} else {
		e.states = append(e.states[max(last, 0):], to)
	}
	if disabled && !was {
		e.again = false
	}
	e.Endpoint = to
}

// write queues the updates of endpoints and of the notices to send again. A notice that is sent
// again delays the later ones of its intent.
func (f *wishFold) write(q *pgx.Batch) {
	var sweeps []pgtype.UUID
	for _, id := range f.order {
		e := f.endpoints[id]
		for _, to := range e.states {
			queueEndpoint(q, to)
		}
		if e.again {
			sweeps = append(sweeps, uuidOf(id))
		}
	}
	if len(sweeps) > 0 {
		q.Queue(beginSweeps, sweeps)
	}
	slices.SortFunc(f.again, notice.Key.Compare)
	f.again = slices.Compact(f.again)
	if len(f.again) > 0 {
		endpoints, intents, seqs := keyColumns(f.again)
		q.Queue(requeueNamed, endpoints, intents, seqs)
	}
}
