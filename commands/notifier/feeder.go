package notifier

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Reader is the name of the checkpoint and lease of the feeder of intents. Delivery is its reader's
// name for transactions: the two programs may feed one queue at once.
const (
	Reader   = "notifier"
	Delivery = "delivery-notifier"
)

// Rows is the queue of webhook deliveries (notices) as the feeder changes it. Every queue
// promises:
//
// Enqueue adds deliveries and moves the reader's checkpoint in one transaction;
// eventlog.ErrMoved if the checkpoint is not at from. Existing deliveries stay unchanged. A
// News without a sequence only records that an intent was requested with the endpoint.
//
// CarryOut executes operators' commands in their order, then adds deliveries as Enqueue does,
// and moves the checkpoint, all in one transaction. Its time does not grow with the number of
// an endpoint's deliveries. Sweep applies the commands to these deliveries, up to most per
// call. Clients take turns in Sweep, starting after turn.
type Rows interface {
	Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error
	CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error
	Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error)
}

// Source is a kind of streams whose public events are sent to webhooks.
type Source struct {
	Prefix string // of the streams' names
	// News returns the deliveries that an event causes, each with its whole body.
	News func(ctx context.Context, r eventlog.Recorded) ([]notice.News, error)
	// Ahead, when set, is called with the source's events of a batch before News, to read side by
	// side what News needs.
	Ahead func(ctx context.Context, events []eventlog.Recorded)
}

// Feeder folds events into deliveries to webhooks. It also executes operators' commands about
// endpoints, in the order of the log. One replica at a time should run it. A crash between any two
// steps loses no delivery and doubles none: each step moves the checkpoint or records its progress.
//
// The changes of many events are one transaction, in which commands come before deliveries. So
// a delivery may be queued to an endpoint that was disabled when it was recorded, if the
// endpoint is enabled in the same transaction.
type Feeder struct {
	Reader      string // name of the checkpoint
	Store       port.Store
	Rows        Rows
	Checkpoints port.Checkpoints
	Sources     []Source
	Wishes      eventlog.Codec[notice.Event]
	// Fed is called when there may be deliveries to send, to wake this process's worker.
	Fed func()
	// Moved is called with the position up to which the queue is fed; nil does nothing.
	Moved func(at eventlog.Position)
	// Crash is called at named points; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger

	toSweep chan struct{}
}

// Run feeds the queue until ctx ends, another replica moves the checkpoint, or an event
// cannot be read.
func (f *Feeder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.toSweep = make(chan struct{}, 1)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { f.sweep(ctx) })
	defer sweeping.Wait()
	defer cancel()
	streams := []string{notice.StreamPrefix}
	for _, s := range f.Sources {
		streams = append(streams, s.Prefix)
	}
	return follower.Feeding[step]{
		Store: f.Store, Checkpoints: f.Checkpoints, Reader: f.Reader, Filter: eventlog.Filter{Streams: streams},
		Ahead: f.ahead, Plan: f.plan, Apply: f.apply, Moved: f.Moved, Log: f.Log,
	}.Run(ctx)
}

// step is the change to the queue that an event causes: deliveries or a command.
type step struct {
	at   eventlog.Position
	news []notice.News
	wish notice.Event
}

// weight is the number of deliveries and commands in a step, and of the deliveries that its
// command names.
func (s step) weight() int {
	n := len(s.news)
	if s.wish != nil {
		n++
	}
	if again, is := s.wish.(notice.RedeliveryAsked); is {
		n += len(again.Notices)
	}
	return n
}

// part is the changes of consecutive steps.
type part struct {
	news   []notice.News
	wishes []notice.Event
	weight int // of the steps
}

func (p *part) add(s step) {
	p.news, p.weight = append(p.news, s.news...), p.weight+s.weight()
	if s.wish != nil {
		p.wishes = append(p.wishes, s.wish)
	}
}

// partMost bounds the weight of a part, unless it is a single step.
const partMost = 2000

func (f *Feeder) ahead(ctx context.Context, events []eventlog.Recorded) {
	for _, source := range f.Sources {
		if source.Ahead == nil {
			continue
		}
		var own []eventlog.Recorded
		for _, r := range events {
			if strings.HasPrefix(string(r.Stream), source.Prefix) {
				own = append(own, r)
			}
		}
		source.Ahead(ctx, own)
	}
}

func (f *Feeder) plan(ctx context.Context, r eventlog.Recorded) ([]step, error) {
	if strings.HasPrefix(string(r.Stream), notice.StreamPrefix) {
		e, err := f.Wishes.Decode(r.Name, r.Data)
		if err != nil {
			return nil, err
		}
		return []step{{at: r.Position, wish: e}}, nil
	}
	for _, source := range f.Sources {
		if !strings.HasPrefix(string(r.Stream), source.Prefix) {
			continue
		}
		news, err := source.News(ctx, r)
		if err != nil || len(news) == 0 {
			return nil, err
		}
		return []step{{at: r.Position, news: news}}, nil
	}
	return nil, nil
}

// apply makes the changes in as few transactions as partMost allows: a client that records many
// commands delays the deliveries of others by a few transactions.
func (f *Feeder) apply(ctx context.Context, from, to eventlog.Position, steps []step) error {
	var now part
	last := from // the last event of the part
	for _, s := range steps {
		if now.weight > 0 && now.weight+s.weight() > partMost {
			if err := f.change(ctx, from, last, now); err != nil {
				return err
			}
			from, now = last, part{}
		}
		now.add(s)
		last = s.at
	}
	return f.change(ctx, from, to, now)
}

// change makes one part of the changes.
func (f *Feeder) change(ctx context.Context, from, to eventlog.Position, p part) error {
	if len(p.wishes) > 0 {
		return f.carryOut(ctx, from, to, p)
	}
	return f.enqueue(ctx, from, to, p.news)
}

func (f *Feeder) enqueue(ctx context.Context, from, to eventlog.Position, news []notice.News) error {
	if err := f.Rows.Enqueue(ctx, f.Reader, from, to, news); err != nil {
		return err
	}
	f.enqueued(news)
	return nil
}

func (f *Feeder) enqueued(news []notice.News) {
	if len(news) > 0 {
		f.crash(crashEnqueued)
		f.fed()
	}
}

// carryOut executes commands. If an endpoint was disabled for its own answers, the event is
// only a record: the queue has done it already.
func (f *Feeder) carryOut(ctx context.Context, from, to eventlog.Position, p part) error {
	if err := f.Rows.CarryOut(ctx, f.Reader, from, to, p.wishes, p.news); err != nil {
		return err
	}
	f.crash(crashWished)
	f.enqueued(p.news)
	f.fed()
	select {
	case f.toSweep <- struct{}{}:
	default:
	}
	return nil
}

const (
	sweepMost  = 500              // deliveries per batch
	sweepEvery = 10 * time.Second // longest interval between sweeps without a new command
)

// sweep applies commands to all deliveries of an endpoint, in batches, concurrently with
// feeding. It rests as long as it works, to leave the queue to others.
func (f *Feeder) sweep(ctx context.Context) {
	for turn := ""; ctx.Err() == nil; {
		began := time.Now()
		client, found, err := f.Rows.Sweep(ctx, turn, sweepMost)
		if err == nil && found {
			turn = client
			f.fed()
			pause.For(ctx, time.Since(began)) //nolint:errcheck // the loop looks at ctx
			continue
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Warn("the webhook deliveries of an endpoint could not be swept", "err", err)
		}
		look := time.NewTimer(sweepEvery)
		select {
		case <-f.toSweep:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
}

func (f *Feeder) crash(point string) {
	if f.Crash != nil {
		f.Crash(point)
	}
}

func (f *Feeder) fed() {
	if f.Fed != nil {
		f.Fed()
	}
}
