package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// An intent may have 200 KB of events, its client may have many thousands of them waiting, and
// a lane claims blocked intents again and again. Therefore a lane compares an intent's fee
// ceiling with the price of gas before it reads the intent, and bounds the bytes that it reads
// for one client. The queue's row has the ceiling and the size.
//
// Intents can be blocked for other reasons than their ceiling: by a budget, a tip, a balance, or
// an estimate that fails. So the bound counts bytes for any of these reasons, and not intents.
// While a client is at its bound, its next intents in the queue have their turn in the next
// period, so that no blocked intent keeps another from being read for ever.

// readMost bounds the bytes that a turn reads for the claimed intents of one client, and the
// bytes that a lane reads in [Settings.Claim] for intents of one client that are blocked. It is
// 20 of the largest intents.
const readMost = 4 << 20

var (
	// errUnread: the client is at its bound. Its intents wait as if they were blocked.
	errUnread = errors.New("the reads for its client's blocked intents are used up")
	// errLater: this turn reads enough other intents of the client. The next turn goes on.
	errLater = errors.New("the turn's reads for its client's intents are used up")
)

// reading is the account of one client's blocked intents in a period of [Settings.Claim].
type reading struct {
	since  time.Time
	vain   int                     // bytes read for intents that were blocked
	read   map[chain.IntentID]bool // these intents; each has 1 KiB at least
	unread eventlog.Position       // the first intent that was not read; 0: none
	// after excludes intents up to this position: they had their turn in the periods before.
	after eventlog.Position
}

// choose sets which candidates are read in this turn. The others have an error, or wait behind
// an intent of their ordering group. An intent whose deadline has passed is read whatever its
// ceiling, as it ends.
func (a *actor) choose(ctx context.Context, all []candidate) {
	a.beginReading()
	turn := map[string]int{}                    // bytes to read, by client
	first := map[intent.Row]eventlog.Position{} // the first candidate of a group
	waits := map[intent.Row]bool{}              // groups with a candidate that is not read
	priced := true                              // the price of gas is known, as far as was asked
	for i := range all {
		c := &all[i]
		if _, holds := a.held.State.Held(c.ID); holds {
			continue
		}
		late, grouped, place := c.Deadline != 0 && a.time() >= c.Deadline, c.Row != intent.Row{}, c.Position
		if at, known := first[c.Row]; grouped && known {
			place = at
		} else if grouped {
			first[c.Row] = place
		}
		switch {
		case late:
		case waits[c.Row]:
			continue
		default:
			c.why = a.hopeless(ctx, c.Claimed, &priced)
		}
		if c.why == nil {
			c.why = a.bound(c.Claimed, place, turn[c.Client])
		}
		if c.why != nil {
			waits[c.Row] = grouped
			continue
		}
		c.reads = true
		turn[c.Client] += c.Size
	}
}

// hopeless returns the error of an intent that cannot continue, as far as the queue's row tells.
// What else an intent asks for can only raise the price that it is refused at. It sets priced to
// false when nodes do not tell the price of gas. In that turn it does not ask again: each
// question may take seconds, and other clients' intents wait meanwhile.
func (a *actor) hopeless(ctx context.Context, c intent.Claimed, priced *bool) error {
	if a.measures.isPending(c.ID) {
		return errMeasuring
	}
	if c.MaxFee.IsZero() || !*priced {
		return nil
	}
	_, err := a.Fees.Offer(ctx, fee.Terms{Legacy: a.Format.Type == 0, MaxFee: chain.Price(c.MaxFee), Sender: a.ID.Sender})
	if errors.Is(err, fee.ErrMarket) {
		return err
	}
	*priced = unlessRefused(err) == nil
	return nil
}

// bound returns an error if an intent is not read in this turn, which reads that many bytes for
// its client already. place is the position of the intent, or of the first one of its ordering
// group.
func (a *actor) bound(c intent.Claimed, place eventlog.Position, turn int) error {
	r := a.reading[c.Client]
	vain := 0
	if r != nil {
		vain = r.vain
	}
	switch {
	case r != nil && place <= r.after:
		return errUnread
	case vain+turn == 0 || vain+turn+c.Size <= readMost:
		return nil
	case turn > 0:
		return errLater
	}
	if !r.read[c.ID] && (r.unread == 0 || place < r.unread) {
		r.unread = place
	}
	return errUnread
}

// beginReading ends the periods that have lasted for [Settings.Claim].
func (a *actor) beginReading() {
	now := a.Now()
	for client, r := range a.reading {
		switch {
		case now.Sub(r.since) < a.Settings.Claim:
		case r.unread == 0:
			delete(a.reading, client)
		default:
			*r = reading{since: now, read: map[chain.IntentID]bool{}, after: r.unread - 1}
		}
	}
}

// readInVain counts the bytes that were read for a blocked intent.
func (a *actor) readInVain(client string, id chain.IntentID, bytes int) {
	r := a.reading[client]
	if r == nil {
		r = &reading{since: a.Now(), read: map[chain.IntentID]bool{}}
		a.reading[client] = r
	}
	r.vain += bytes
	r.read[id] = true
}
