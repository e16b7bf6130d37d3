package feed

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// readMost is how many events are read from the log at once.
const readMost = 1000

// subscription is one call of Subscribe. While it holds the group it has a session.
type subscription struct {
	o      Options
	name   string // name of the checkpoint
	topic  string
	filter eventlog.Filter
	holder string
	out    chan *message.Message
	log    *slog.Logger
	begun  bool   // the new group's first position is saved
	tried  uint64 // token of the last attempt at that

	delivered, acked, nacked, parks atomic.Uint64
	position, head                  atomic.Uint64
	parked                          atomic.Int64            // number of parked streams
	session                         atomic.Pointer[session] // nil while another process has the group
}

// run claims the group repeatedly until ctx ends or the store is closed.
func (s *subscription) run(ctx context.Context) {
	for ctx.Err() == nil {
		asked := time.Now()
		claim, held, err := s.o.Groups.Claim(ctx, s.name, s.holder, s.o.TTL)
		if held {
			err = s.hold(ctx, claim, asked)
		}
		if errors.Is(err, eventlog.ErrClosed) {
			return
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the group gets no events, retrying", "err", err)
		}
		_ = pause(ctx, s.o.TTL/3) // the loop condition sees its end
	}
}

// hold delivers events until the claim is lost, ctx ends, or an error occurs.
func (s *subscription) hold(ctx context.Context, claim consumer.Claim, asked time.Time) (err error) {
	s.log.Info("consumer group won", "position", uint64(claim.Position))
	defer func() { err = errors.Join(err, s.yield(ctx, claim.Token)) }()
	// No other subscription has had the group, and this one has not saved its beginning.
	if s.o.FromEnd && !s.begun && claim.Position == 0 && claim.Token <= s.tried+1 {
		s.tried = claim.Token
		if claim.Position, err = s.o.Log.Head(ctx); err != nil {
			return err
		}
		if err := s.o.Groups.Save(ctx, s.name, claim.Token, claim.Position); err != nil {
			return err
		}
		s.begun = true // otherwise a later session under this claim would skip the events until then
	}
	parked, err := s.o.Groups.Parked(ctx, s.name)
	if err != nil {
		return err
	}
	n := &session{
		subscription: s, token: claim.Token, saved: claim.Position, trusted: asked.Add(s.trust()), seed: maphash.MakeSeed(),
		tally: newTally(claim.Position, s.o.InFlight, s.o.SaveEvents),
	}
	s.position.Store(uint64(claim.Position))
	s.parked.Store(int64(len(parked)))
	n.makeLanes(parked)
	s.session.Store(n)
	defer s.session.Store(nil)
	return n.run(ctx)
}

// trust is how long a claim is relied upon, counted from its request: less than its term, which
// began later.
func (s *subscription) trust() time.Duration { return s.o.TTL - s.o.TTL/6 }

// yield lets another process take over at once.
func (s *subscription) yield(ctx context.Context, token uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.TTL)
	defer cancel()
	return s.o.Groups.Yield(ctx, s.name, token)
}

// session is the period in which a subscription holds its group.
type session struct {
	*subscription

	token   uint64
	tally   *tally
	lanes   []*lane
	seed    maphash.Seed
	saved   eventlog.Position // owned by keep, like trusted
	trusted time.Time         // the claim is relied upon until then
	stop    context.CancelCauseFunc
}

// run reads, delivers, saves and renews, and ends when one of these fails.
func (n *session) run(ctx context.Context) error {
	working, stop := context.WithCancelCause(ctx)
	n.stop = stop
	var all sync.WaitGroup
	for _, l := range n.lanes {
		all.Go(func() { l.run(working) })
	}
	from := n.saved
	all.Go(func() { stop(n.read(working, from)) })
	n.keep(working)
	all.Wait() // lanes wait for acks within the grace period
	err := context.Cause(working)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if errors.Is(err, consumer.ErrSuperseded) {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.o.TTL)
	defer cancel()
	return errors.Join(err, n.save(last))
}

// read passes the log's events to their lanes.
func (n *session) read(ctx context.Context, from eventlog.Position) error {
	for batch, err := range n.o.Log.Subscribe(ctx, from, n.filter, readMost) {
		if err != nil {
			return err
		}
		for _, e := range batch.Events {
			i, err := n.tally.add(ctx, e)
			if err != nil {
				return err
			}
			n.laneOf(e.Stream).in <- i // has room for all events that the tally admits
		}
		n.tally.upto(batch.Next)
	}
	return ctx.Err()
}

// keep saves the checkpoint, renews the claim and looks for commands until ctx ends.
func (n *session) keep(ctx context.Context) {
	save, renew := time.NewTicker(n.o.SaveEvery), time.NewTicker(n.o.TTL/3)
	defer save.Stop()
	defer renew.Stop()
	for ctx.Err() == nil {
		var err error
		select {
		case <-save.C:
			err = n.saveWithin(ctx)
		case <-n.tally.save:
			err = n.saveWithin(ctx)
		case <-renew.C:
			err = n.renew(ctx)
		case <-ctx.Done():
		}
		if err != nil {
			n.stop(err)
		}
	}
}

func (n *session) saveWithin(ctx context.Context) error {
	within, cancel := context.WithDeadline(ctx, n.trusted)
	defer cancel()
	if err := n.save(within); errors.Is(err, consumer.ErrSuperseded) || errors.Is(err, eventlog.ErrClosed) {
		return err
	} else if err != nil && ctx.Err() == nil {
		n.log.Warn("the checkpoint could not be saved", "err", err) // the next save includes it
	}
	return nil
}

func (n *session) save(ctx context.Context) error {
	to := n.tally.checkpoint()
	if to == n.saved {
		return nil
	}
	if err := n.o.Groups.Save(ctx, n.name, n.token, to); err != nil {
		return fmt.Errorf("save checkpoint %d: %w", to, err)
	}
	n.saved = to
	n.position.Store(uint64(to))
	return nil
}

// renew renews the claim, and looks for commands to resume streams.
func (n *session) renew(ctx context.Context) error {
	now := time.Now()
	within, cancel := context.WithDeadline(ctx, n.trusted)
	defer cancel()
	claim, held, err := n.o.Groups.Claim(within, n.name, n.holder, n.o.TTL)
	switch {
	case err == nil && (!held || claim.Token != n.token):
		return consumer.ErrSuperseded
	case err == nil:
		n.trusted = now.Add(n.trust())
	case !time.Now().Before(n.trusted):
		return fmt.Errorf("the claim was not renewed in time: %w", err)
	default:
		return nil // the claim leaves time for another try
	}
	if head, err := n.o.Log.Head(within); err == nil {
		n.head.Store(uint64(head))
	}
	if n.parked.Load() == 0 {
		return nil
	}
	parked, err := n.o.Groups.Parked(within, n.name)
	if err != nil {
		return nil //nolint:nilerr // wishes can wait
	}
	for _, p := range parked {
		if p.Wish != consumer.Wait {
			tell(n.laneOf(p.Stream).wished)
		}
	}
	return nil
}

// laneOf assigns streams to lanes. The assignment holds within a session only.
func (n *session) laneOf(stream eventlog.Stream) *lane {
	return n.lanes[maphash.String(n.seed, string(stream))%uint64(len(n.lanes))]
}

func (n *session) makeLanes(parked []consumer.Parked) {
	n.lanes = make([]*lane, n.o.Lanes)
	for i := range n.lanes {
		n.lanes[i] = &lane{
			session: n, in: make(chan *item, n.o.InFlight), wished: make(chan struct{}, 1),
			parked: map[eventlog.Stream]eventlog.Version{}, caught: map[eventlog.Stream]eventlog.Version{},
		}
	}
	for _, p := range parked {
		n.laneOf(p.Stream).parked[p.Stream] = 0
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
