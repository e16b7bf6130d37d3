package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "notifier"

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

// Feeder folds events of intents into deliveries to the webhooks that the intents were
// requested with. It also executes operators' commands about endpoints, in the order of the
// log. One replica at a time should run it. A crash between any two steps loses no delivery
// and doubles none: each step moves the checkpoint or records its progress.
//
// The changes of many events are one transaction, in which commands come before deliveries. So
// a delivery may be queued to an endpoint that was disabled when it was recorded, if the
// endpoint is enabled in the same transaction.
type Feeder struct {
	Store       port.Store
	Rows        Rows
	Checkpoints port.Checkpoints
	Intents     eventlog.Codec[intent.Event]
	Wishes      eventlog.Codec[notice.Event]
	// Fed is called when there may be deliveries to send, to wake this process's worker.
	Fed func()
	// Moved is called with the position up to which the queue is fed; nil does nothing.
	Moved func(at eventlog.Position)
	// Crash is called at named points; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger

	targets map[eventlog.Stream][]target
	toSweep chan struct{}
}

// target is the endpoint of an intent's deliveries.
type target struct {
	endpoint notice.EndpointID
	client   string
	url      string // as recorded
}

// targetsMax bounds the intents whose webhooks are remembered.
const targetsMax = 1 << 14

// Run feeds the queue until ctx ends, another replica moves the checkpoint, or an event
// cannot be read.
func (f *Feeder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.toSweep = make(chan struct{}, 1)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { f.sweep(ctx) })
	defer sweeping.Wait()
	defer cancel()
	return follower.Feeding[step]{
		Store: f.Store, Checkpoints: f.Checkpoints, Reader: Reader,
		Filter: eventlog.Filter{Streams: []string{intent.StreamPrefix, notice.StreamPrefix}},
		Plan:   f.plan, Apply: f.apply, Moved: f.Moved, Log: f.Log,
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

func (f *Feeder) plan(ctx context.Context, r eventlog.Recorded) ([]step, error) {
	if strings.HasPrefix(string(r.Stream), notice.StreamPrefix) {
		e, err := f.Wishes.Decode(r.Name, r.Data)
		if err != nil {
			return nil, err
		}
		return []step{{at: r.Position, wish: e}}, nil
	}
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return nil, err
	}
	e, err := f.Intents.Decode(r.Name, r.Data)
	if err != nil {
		return nil, err
	}
	if asked, ok := e.(intent.Requested); ok {
		s := step{at: r.Position}
		for _, t := range f.remember(r.Stream, asked) {
			s.news = append(s.news, notice.News{Key: notice.Key{Endpoint: t.endpoint}, Client: t.client, URL: t.url})
		}
		if len(s.news) == 0 {
			return nil, nil
		}
		return []step{s}, nil
	}
	said, told := intent.Tell(id, e)
	if !told {
		return nil, nil
	}
	targets, err := f.of(ctx, r.Stream)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	body, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	s := step{at: r.Position}
	for _, t := range targets {
		key := notice.Key{Endpoint: t.endpoint, Intent: id, Seq: said.Sequence}
		s.news = append(s.news, notice.News{Key: key, Client: t.client, URL: t.url, Body: body})
	}
	return []step{s}, nil
}

// of returns the targets of an intent, which its first event fixes for ever.
func (f *Feeder) of(ctx context.Context, stream eventlog.Stream) ([]target, error) {
	if known, ok := f.targets[stream]; ok {
		return known, nil
	}
	for r, err := range f.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := f.Intents.Decode(r.Name, r.Data)
		if err != nil {
			return nil, err
		}
		asked, _ := e.(intent.Requested)
		return f.remember(stream, asked), nil
	}
	return nil, fmt.Errorf("%s has no first event", stream)
}

// remember remembers the targets of an intent. It forgets all others when there is no room:
// they can be read again.
func (f *Feeder) remember(stream eventlog.Stream, asked intent.Requested) (targets []target) {
	for _, w := range asked.Request.Webhooks {
		targets = append(targets, target{notice.EndpointOf(asked.Request.Client, w.URL), asked.Request.Client, w.URL})
	}
	if f.targets == nil || len(f.targets) >= targetsMax {
		f.targets = map[eventlog.Stream][]target{}
	}
	f.targets[stream] = targets
	return targets
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
	if err := f.Rows.Enqueue(ctx, Reader, from, to, news); err != nil {
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
	if err := f.Rows.CarryOut(ctx, Reader, from, to, p.wishes, p.news); err != nil {
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
