package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// lane delivers the events of some streams, one after the other. No other goroutine handles
// these streams, so it needs no lock. When a parked stream resumes, the lane itself reads it
// from the log until it has caught up with its input.
type lane struct {
	*session

	in     chan *item
	wished chan struct{} // a command resumes a stream of the lane

	parked map[eventlog.Stream]eventlog.Version // the newest version held back; 0: none yet
	caught map[eventlog.Stream]eventlog.Version // the version up to which a resumed stream was read
}

// run delivers until ctx ends.
func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case i := <-l.in:
			if l.pass(ctx, i.Recorded) {
				l.tally.settle(i)
			}
		case <-l.wished:
			l.goOn(ctx)
		case <-ctx.Done():
		}
	}
}

// pass handles the next event of the log. It reports whether the event is done; if not, ctx has
// ended.
func (l *lane) pass(ctx context.Context, r eventlog.Recorded) bool {
	if _, held := l.parked[r.Stream]; held {
		l.parked[r.Stream] = r.Version
		return true
	}
	if upto, ok := l.caught[r.Stream]; ok {
		if r.Version >= upto {
			delete(l.caught, r.Stream)
		}
		if r.Version <= upto {
			return true
		}
	}
	why, tries := l.deliver(ctx, r)
	if why == nil {
		return true
	}
	if ctx.Err() != nil || !l.park(ctx, r, why, tries) {
		return false
	}
	l.parked[r.Stream] = r.Version
	l.subscription.parked.Add(1)
	return true
}

// errNacked is the reason if a message was nacked without one.
var errNacked = errors.New("the message was nacked")

// deliver delivers an event until it is acked, and returns nil. Otherwise it returns the reason
// and the number of tries: then the stream is to be parked, unless ctx has ended.
func (l *lane) deliver(ctx context.Context, r eventlog.Recorded) (why error, tries int) { //nolint:staticcheck // it is an outcome
	wait := l.o.RetryFirst
	for tries = 1; ; tries++ {
		if why = l.try(ctx, r); why == nil {
			return nil, tries
		}
		if ctx.Err() != nil || tries > l.o.Retries && l.subscription.parked.Load() < int64(l.o.MostParked) {
			return why, tries
		}
		if pause(ctx, wait) != nil {
			return why, tries
		}
		wait = min(2*wait, l.o.RetryMost)
	}
}

// try delivers an event once, and waits for the ack. When ctx ends it waits for the grace
// period, because the consumer may be processing the event.
func (l *lane) try(ctx context.Context, r eventlog.Recorded) error {
	said := &cause{}
	working, cancel := context.WithCancel(context.WithValue(ctx, causeKey{}, said))
	defer cancel()
	m, err := newMessage(working, r, l.o.Upcast)
	if err != nil {
		return err
	}
	select {
	case l.out <- m:
		l.delivered.Add(1)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-m.Acked():
		l.acked.Add(1)
		return nil
	case <-m.Nacked():
		return l.refused(said)
	case <-ctx.Done():
	}
	return l.last(ctx, m, said)
}

func (l *lane) refused(said *cause) error {
	l.nacked.Add(1)
	if err := said.get(); err != nil {
		return err
	}
	return errNacked
}

// last waits for the ack of a message whose subscription is ending.
func (l *lane) last(ctx context.Context, m *message.Message, said *cause) error {
	grace := time.NewTimer(l.o.Grace)
	defer grace.Stop()
	select {
	case <-m.Acked():
		l.acked.Add(1)
		return nil
	case <-m.Nacked():
		return l.refused(said)
	case <-grace.C:
		return ctx.Err()
	}
}

// park writes the stream's parked row before the lane continues: a checkpoint beyond the event
// is saved only after the row. It reports whether the row is written.
func (l *lane) park(ctx context.Context, r eventlog.Recorded, why error, tries int) bool {
	row := consumer.Parked{Stream: r.Stream, Version: r.Version, Position: r.Position, Error: consumer.Text(why), Attempts: tries}
	for wait := l.o.RetryFirst; ; wait = min(2*wait, l.o.RetryMost) {
		err := l.o.Groups.Park(ctx, l.name, l.token, row)
		if err == nil {
			l.parks.Add(1)
			l.log.Warn("stream parked", "stream", string(r.Stream), "version", uint64(r.Version), "position", uint64(r.Position), "attempts", tries, "err", row.Error)
			return true
		}
		if l.gaveUp(ctx, err) || pause(ctx, wait) != nil {
			return false
		}
	}
}

// gaveUp reports whether the session is over. It ends the session if another process has the
// group.
func (l *lane) gaveUp(ctx context.Context, err error) bool {
	if errors.Is(err, consumer.ErrSuperseded) || errors.Is(err, eventlog.ErrClosed) {
		l.stop(err)
	} else if ctx.Err() == nil {
		l.log.Warn("parked streams cannot be reached", "err", err)
	}
	return ctx.Err() != nil
}

// goOn replays the streams that a command resumes.
func (l *lane) goOn(ctx context.Context) {
	all, err := l.o.Groups.Parked(ctx, l.name)
	if err != nil {
		l.gaveUp(ctx, err) // the next renew finds the command again
		return
	}
	for _, p := range all {
		if _, mine := l.parked[p.Stream]; !mine || p.Wish == consumer.Wait {
			continue
		}
		if err := l.replay(ctx, p); err != nil && !l.gaveUp(ctx, err) {
			l.log.Warn("parked stream could not be resumed", "stream", string(p.Stream), "err", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// replay delivers a parked stream's events, up to its current end, and then unparks it. If an
// event fails, the stream is parked again, at that event.
func (l *lane) replay(ctx context.Context, p consumer.Parked) error {
	after := p.Version - 1
	if p.Wish == consumer.Skip {
		after = p.Version
	}
	for r, err := range l.o.Log.ReadStream(ctx, p.Stream, after) {
		if err != nil {
			return fmt.Errorf("read %s: %w", p.Stream, err)
		}
		after = r.Version
		if !l.filter.Passes(r.Stream, r.Name) {
			continue
		}
		if why, tries := l.deliver(ctx, r); why != nil {
			if ctx.Err() == nil {
				l.park(ctx, r, why, tries)
			}
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.o.Groups.Unpark(ctx, l.name, l.token, p.Stream); err != nil {
		return err
	}
	if l.parked[p.Stream] < after {
		l.caught[p.Stream] = after
	}
	delete(l.parked, p.Stream)
	l.subscription.parked.Add(-1)
	l.log.Info("parked stream resumed", "stream", string(p.Stream), "version", uint64(after))
	return nil
}
