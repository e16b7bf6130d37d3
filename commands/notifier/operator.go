package notifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// snapshotEvery bounds the events of an endpoint that a command reads, and is the number of
// events from one snapshot to the next.
const snapshotEvery = 100

// Snapshots keep the state of endpoints' commands: however many were recorded, the next one
// reads at most a hundred events. failed is called when a snapshot could not be read or kept.
func Snapshots(rows port.SnapshotRows, failed func(eventlog.Stream, error)) *handler.Snapshots[notice.Wishes] {
	return &handler.Snapshots[notice.Wishes]{
		Rows: rows, Every: snapshotEvery, Small: true, Failed: failed,
		Schema: notice.SnapshotSchema, Encode: notice.Wishes.Snapshot, Decode: notice.RestoreWishes,
	}
}

// Endpoints handles the commands about endpoints in domain/notice.
type Endpoints = handler.Handler[notice.Wishes, notice.Command, notice.Event]

// Operator records operators' commands about endpoints. The feeder reads them in the log
// and executes them.
type Operator struct {
	Endpoints Endpoints
	Rows      interface {
		Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error)
	}
	Now func() time.Time
}

// Enable resumes sending to an endpoint and clears its failures. An enabled endpoint stays
// as it is.
func (o Operator) Enable(ctx context.Context, id notice.EndpointID, meta eventlog.Meta) error {
	e, err := o.known(ctx, id)
	if err != nil {
		return err
	}
	if e.Disabled == notice.Enabled && e.Failures == 0 {
		return nil
	}
	return o.handle(ctx, id, notice.EnableAgain{Endpoint: id, At: o.Now()}, meta)
}

// Disable ends sending to an endpoint. Its queued deliveries are given up, in batches.
func (o Operator) Disable(ctx context.Context, id notice.EndpointID, meta eventlog.Meta) error {
	if _, err := o.known(ctx, id); err != nil {
		return err
	}
	return o.handle(ctx, id, notice.Disable{Endpoint: id, Reason: notice.Operator, At: o.Now()}, meta)
}

// Redeliver sends deliveries again, under the same ids: the given ones, or all dead ones if
// none is given. It refuses with notice.ErrDisabled while the endpoint is disabled.
func (o Operator) Redeliver(ctx context.Context, id notice.EndpointID, notices []notice.Ref, meta eventlog.Meta) error {
	e, err := o.known(ctx, id)
	if err != nil {
		return err
	}
	if err := e.Redeliverable(); err != nil {
		return err
	}
	return o.handle(ctx, id, notice.SendAgain{Endpoint: id, Notices: notices, At: o.Now()}, meta)
}

func (o Operator) known(ctx context.Context, id notice.EndpointID) (notice.Endpoint, error) {
	e, ok, err := o.Rows.Endpoint(ctx, id)
	if err == nil && !ok {
		err = notice.ErrEndpoint
	}
	return e, err
}

func (o Operator) handle(ctx context.Context, id notice.EndpointID, c notice.Command, meta eventlog.Meta) error {
	_, err := o.Endpoints.Do(ctx, notice.Stream(id), c, meta)
	return err
}

// recordTime bounds the attempts to record that an endpoint was disabled, and the time that a
// worker waits for records when it stops.
const recordTime = 10 * time.Second

// Record records, for a [Worker], that an endpoint was disabled for its own answers. The
// queue has done it already, so a failure loses only the record.
func (o Operator) Record(ctx context.Context, e notice.Endpoint, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := o.handle(ctx, e.ID, notice.Disable{Endpoint: e.ID, Reason: e.Disabled, At: e.DisabledAt}, eventlog.Meta{Actor: Reader})
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		log.Warn("recording that an endpoint was disabled failed", "endpoint", fmt.Sprint(e.ID), "err", err)
	}
}
