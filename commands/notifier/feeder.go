package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "notifier"

// Rows is the queue of notices as the feeder fills and changes it. What every queue
// promises: Enqueue takes in news and moves the reader's checkpoint in one transaction,
// event.ErrMoved if the checkpoint is not at from; what is there already stays as it is. News
// without a sequence only tell that an intent was asked for with the endpoint. CarryOut carries
// out a wish and moves the checkpoint likewise, in a time that does not depend on how many
// notices the endpoint has: what the wish means for all of them is done by Sweep, at most so
// many of them at a time. Clients take turns in it, from the one behind turn on.
type Rows interface {
	Enqueue(ctx context.Context, reader string, from, to event.Position, news []notice.News) error
	CarryOut(ctx context.Context, reader string, from, to event.Position, wish notice.Event) error
	Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error)
}

// Feeder folds events of intents into notices to the webhooks that the intents were asked
// for with, and carries out what was wished about endpoints, in the order of the log. One
// replica at a time runs it. A crash between any two steps loses none and doubles none: each
// moves the checkpoint, or says how far it has come.
type Feeder struct {
	Store       commands.Store
	Rows        Rows
	Checkpoints commands.Checkpoints
	Intents     event.Codec[intent.Event]
	Wishes      event.Codec[notice.Event]
	// Fed is called when there may be something to send, to wake this process's worker.
	Fed func()
	// Moved is called with the position up to which the queue is fed; nil does nothing.
	Moved func(at event.Position)
	// Crash is called at named points; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger

	targets map[event.Stream][]target
	toSweep chan struct{}
}

// target is where an intent's notices go.
type target struct {
	endpoint notice.EndpointID
	client   string
	url      string // as it is recorded
}

// targetsMax bounds of how many intents the webhooks are remembered.
const targetsMax = 1 << 14

// Run feeds the queue until ctx ends, the checkpoint was moved by another, or an event
// cannot be read.
func (f *Feeder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.toSweep = make(chan struct{}, 1)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { f.sweep(ctx) })
	defer sweeping.Wait()
	defer cancel()
	return commands.Feeding[step]{
		Store: f.Store, Checkpoints: f.Checkpoints, Reader: Reader,
		Filter: event.Filter{Streams: []string{intent.StreamPrefix, notice.StreamPrefix}},
		Plan:   f.plan, Apply: f.apply, Moved: f.Moved, Log: f.Log,
	}.Run(ctx)
}

// step is what an event means to the queue: news, or a wish.
type step struct {
	at   event.Position
	news []notice.News
	wish notice.Event
}

func (f *Feeder) plan(ctx context.Context, r event.Recorded) ([]step, error) {
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

// of are the targets of an intent, which its first event has for ever.
func (f *Feeder) of(ctx context.Context, stream event.Stream) ([]target, error) {
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

// remember forgets all others when there is no room: they are soon known again.
func (f *Feeder) remember(stream event.Stream, asked intent.Requested) (targets []target) {
	for _, w := range asked.Request.Webhooks {
		targets = append(targets, target{notice.EndpointOf(asked.Request.Client, w.URL), asked.Request.Client, w.URL})
	}
	if f.targets == nil || len(f.targets) >= targetsMax {
		f.targets = map[event.Stream][]target{}
	}
	f.targets[stream] = targets
	return targets
}

// apply takes in the news up to each wish before it carries the wish out.
func (f *Feeder) apply(ctx context.Context, from, to event.Position, steps []step) error {
	var news []notice.News
	upto := from // the last event of the news
	for _, s := range steps {
		if s.wish == nil {
			news, upto = append(news, s.news...), s.at
			continue
		}
		if len(news) > 0 {
			if err := f.enqueue(ctx, from, upto, news); err != nil {
				return err
			}
			from, news = upto, nil
		}
		if err := f.carryOut(ctx, from, s); err != nil {
			return err
		}
		from = s.at
	}
	if from == to {
		return nil
	}
	return f.enqueue(ctx, from, to, news)
}

func (f *Feeder) enqueue(ctx context.Context, from, to event.Position, news []notice.News) error {
	if err := f.Rows.Enqueue(ctx, Reader, from, to, news); err != nil {
		return err
	}
	if len(news) > 0 {
		f.crash(crashEnqueued)
		f.fed()
	}
	return nil
}

// carryOut carries out what is wished. What an endpoint's own answers have disabled is recorded
// for people: the queue has done it.
func (f *Feeder) carryOut(ctx context.Context, from event.Position, s step) error {
	if err := f.Rows.CarryOut(ctx, Reader, from, s.at, s.wish); err != nil {
		return err
	}
	f.crash(crashWished)
	f.fed()
	select {
	case f.toSweep <- struct{}{}:
	default:
	}
	return nil
}

const (
	sweepMost  = 500              // notices in one go
	sweepEvery = 10 * time.Second // what is to be done is looked for, beside when it is wished
)

// sweep does what is wished of all notices of an endpoint, some at a time, beside the feeding.
// It rests as long as it works, so that the queue is left to others.
func (f *Feeder) sweep(ctx context.Context) {
	for turn := ""; ctx.Err() == nil; {
		began := time.Now()
		client, found, err := f.Rows.Sweep(ctx, turn, sweepMost)
		if err == nil && found {
			turn = client
			f.fed()
			commands.Pause(ctx, time.Since(began)) //nolint:errcheck // the loop looks at ctx
			continue
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Warn("notices of an endpoint not swept", "err", err)
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
