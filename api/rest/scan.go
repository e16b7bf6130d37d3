package rest

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	// ScanUnit is how many events of the log a stream passes for one unit of rate, whether
	// its filter lets them through or not. The request itself pays for the first.
	ScanUnit = 100
	// scanBytes is the size up to which an event that the client receives counts as one event. A
	// larger one counts once more for each scanBytes. The size of events that the filter or their
	// owner excludes does not count: it would show how large other clients' events are.
	scanBytes = 1 << 10
	// scanPlaces is the number of streams that read the log from the store at once, of all
	// clients. The embedded log has four connections for readers: two or more are free for
	// delivery and for reads of one transaction.
	scanPlaces = 2
	// scanShare is the number of them that one client has at most.
	scanShare = 1
	// skipMost is the number of events that a stream skips at most in one stretch: it pays for
	// them without reading them.
	skipMost = 10_000
)

// NewScans returns the places of streams that read the log. The APIs of a process share them:
// they read one log.
func NewScans() *Places { return NewPlaces(scanPlaces, scanShare, 0) }

// errNotYet: a stretch cannot be read before the client has paid its debts, or has a place.
var errNotYet = errors.New("these events cannot be read yet")

// debt is the sums that the client has to pay before the stream reads on. Debts are the client's: they are
// kept beside its bucket, and outlive the stream.
type debt struct {
	scanned int // events that do not make a unit yet: the stream's request pays for them
	// dueScans and dueLookUps are the sums that the client has to have paid: see [limiter.owe].
	dueScans, dueLookUps uint64
}

// owe adds the cost of a stretch to the client's debts.
func (f *following) owe(events, lookUps int) {
	p := f.on.payer
	if p.rate.PerSecond == 0 {
		return
	}
	f.scanned += events
	if units := f.scanned / ScanUnit; units > 0 {
		f.dueScans = f.limiter.owe(p.client, units)
	}
	f.scanned %= ScanUnit
	if lookUps > 0 {
		f.dueLookUps = f.limiter.owe(p.lookUps(), lookUps)
	}
}

// oweBytes adds the cost of an event that was sent, beyond the cost of any event.
func (f *following) oweBytes(size int) { f.owe(max(size-1, 0)/scanBytes, 0) }

// oweAll has the stream wait until all debts of the client are paid, also the debts of its other
// streams, open or closed.
func (f *following) oweAll() {
	if p := f.on.payer; p.rate.PerSecond > 0 {
		f.dueScans, f.dueLookUps = f.limiter.owe(p.client, 0), f.limiter.owe(p.lookUps(), 0)
	}
}

// pay pays debts of the client, and returns how long the stream has to wait until the client
// can pay more. A client that has spent its rate is served at its rate; the stream does not
// end, and its marks say how far it is.
func (f *following) pay() time.Duration {
	p := f.on.payer
	if p.rate.PerSecond == 0 {
		return 0
	}
	if wait := f.limiter.settle(f.Now(), p.client, p.rate, f.dueScans); wait > 0 {
		return wait
	}
	return f.limiter.settle(f.Now(), p.lookUps(), p.rate, f.dueLookUps)
}

// scan is the reading of one stretch. It has a place only from its first read of the store
// on: a stretch that is in memory needs none, unless owners are looked up for it.
type scan struct {
	*following
	passed, looked int    // events and look-ups, for which the client pays
	leave          func() // gives the place back; nil without one
	// look is set if the filter names transactions or intents and the stretch looked for them.
	look *search
}

// scanKey is the context's key of the [scan].
type scanKey struct{}

// LookUp goes before each read of a transaction's or an intent's stream to show an event of it. The
// client pays a unit of its rate for look-ups, unless its filter names the transaction or intent:
// see [Names]. An error ends the stretch.
func LookUp(ctx context.Context) error {
	s, scans := ctx.Value(scanKey{}).(*scan)
	if !scans {
		return nil
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.looked++
	return nil
}

// enter waits for a place, and no longer than the client may go without a mark. A client
// with debts gets none.
func (s *scan) enter(ctx context.Context) error {
	if s.leave != nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, s.Limits.StreamSilence)
	defer cancel()
	leave, err := s.Scans.Enter(waiting, s.on.holder())
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil:
		return errNotYet
	}
	if s.oweAll(); s.pay() > 0 {
		leave()
		return errNotYet
	}
	s.leave = leave
	return nil
}

// end charges the client, and then gives the place back: the client's next stream to get it
// finds the debt.
func (s *scan) end() {
	if s.Names != NamesNone {
		s.looked = 0
	}
	s.owe(s.passed, s.looked)
	if s.leave != nil {
		s.leave()
	}
}

// first reads the first stretch, which is empty while the client has debts.
func (f *following) first(ctx context.Context) (stretch, error) {
	if f.oweAll(); f.pay() > 0 {
		return stretch{next: f.at}, nil
	}
	return f.read(ctx)
}

// read finds the next stretch, which is empty when it cannot be read yet.
func (f *following) read(ctx context.Context) (stretch, error) {
	if f.over() {
		return stretch{next: f.at}, nil
	}
	found, look, err := f.stretch(ctx)
	if errors.Is(err, errNotYet) {
		return stretch{next: f.at}, nil
	}
	if look != nil && len(found.events) == 0 {
		look.foundNothing(ctx)
	}
	return found, err
}

// stretch reads a stretch. The search is nil if it looked for nothing that the filter names.
func (f *following) stretch(ctx context.Context) (stretch, *search, error) {
	s := &scan{following: f}
	defer s.end()
	found, err := s.read(ctx)
	return found, s.look, err
}

// looks begins a search, if the filter names transactions or intents.
func (s *scan) looks() {
	if s.Names == NamesNone {
		return
	}
	look := s.on.search()
	s.look = &look
}

func (s *scan) read(ctx context.Context) (stretch, error) {
	if err := s.reach(ctx); err != nil {
		return stretch{}, err
	}
	if s.at < s.skip {
		next := min(s.skip, s.at+skipMost)
		if s.Until != nil {
			next = min(next, *s.Until)
		}
		s.passed += int(next - s.at)
		return stretch{next: next}, nil
	}
	batch, recent := s.Stream.Tail.Recent(s.at, followBatch)
	if !recent {
		if err := s.enter(ctx); err != nil {
			return stretch{}, err
		}
	}
	if s.look == nil {
		s.looks()
	}
	reading, cancel := s.reading(ctx)
	defer cancel()
	if !recent {
		var err error
		if batch, err = s.Stream.Tail.Read(reading, s.at, s.Stored, followBatch); err != nil {
			return stretch{}, err
		}
	}
	return s.show(reading, batch)
}

// reading bounds the reads of a stretch, and has them counted.
func (s *scan) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, scanKey{}, s), s.Limits.WorkTimeout)
}

// reach asks once whether anything up to the log's end is the client's. The head was read
// before that, so that nothing below it is passed over that is the client's.
func (s *scan) reach(ctx context.Context) error {
	if s.Reaches == nil {
		return nil
	}
	reading, cancel := s.reading(ctx)
	defer cancel()
	if err := s.enter(reading); err != nil { // whether the owner is cached or not
		return err
	}
	s.looks()
	reaches, err := s.Reaches(reading)
	if err != nil {
		return err
	}
	s.Reaches = nil
	if s.passed += ScanUnit; !reaches {
		s.skip = s.head
	}
	return nil
}

// show collects the events of a batch that the client is shown. When it cannot be said of an
// event, the events before it are a stretch of their own, so that the stream stands still no
// longer than the trouble lasts.
func (s *scan) show(ctx context.Context, batch eventlog.Batch) (stretch, error) {
	found, at, passed := stretch{next: batch.Next, live: batch.Live}, s.at, batch.Next
	defer func() { s.pass(passed) }()
	for _, e := range batch.Events {
		if s.Until != nil && e.Position > *s.Until {
			found.next = *s.Until
			break
		}
		shown, err := s.Show(ctx, e)
		if errors.Is(err, errNotYet) {
			passed = at // the batch is of memory: one of the store has a place
		}
		switch {
		case err != nil && at > s.at:
			found.next, found.live = at, false
			return found, nil
		case err != nil:
			return stretch{}, err
		case shown != nil:
			found.events = append(found.events, shownEvent{e.Position, shown})
		}
		at = e.Position
	}
	return found, nil
}

// pass counts the events up to a position.
func (s *scan) pass(upto eventlog.Position) {
	events := int(upto - s.at)
	if s.Names == NamesFew {
		events *= fewWeight
	}
	s.passed += events
}
