package owners

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Ownership is the owners of one transaction, as of a version of its stream. It follows from
// the stream alone, and not from the read models.
type Ownership struct {
	Version eventlog.Version // of the last event that was applied
	Sender  chain.Address
	Group   *chain.GroupID // the group that the transaction claims or has joined
	// Claimed: an access key signed, and the chain has not confirmed yet that it may.
	Claimed bool

	confirmed step // confirmed the sender; zero while it is only claimed
	owners    []owner
	// last is the last event that was applied, began the first one.
	last, began step
	// correlation and trace are those of the first submission.
	correlation eventlog.ID
	trace       string
}

// step is an event of the stream.
type step struct {
	version  eventlog.Version
	position eventlog.Position
	id       eventlog.ID
}

// owner is a client, and the event since which it owns the transaction.
type owner struct {
	client string
	since  step
}

// Evolve applies the next event of the stream; an event that was applied before is skipped.
func (o Ownership) Evolve(r eventlog.Recorded, codec eventlog.Codec[tx.Event]) (Ownership, error) {
	switch {
	case r.Version <= o.Version:
		return o, nil
	case r.Version != o.Version+1:
		return o, fmt.Errorf("%s: version %d follows %d", r.Stream, r.Version, o.Version)
	}
	at := step{r.Version, r.Position, r.ID}
	if r.Version > 1 && !Filter().Passes("", r.Name) { // includes events that this version of the program does not know
		o.Version, o.last = r.Version, at
		return o, nil
	}
	e, err := codec.Decode(r.Name, r.Data)
	if err != nil {
		return o, err
	}
	if _, first := e.(tx.Accepted); first != (r.Version == 1) {
		return o, fmt.Errorf("%s: version %d is %s", r.Stream, r.Version, r.Name)
	}
	o.Version, o.last = r.Version, at
	switch e := e.(type) {
	case tx.Accepted:
		o.Sender, o.Group = e.Sender, e.Group
		o.owners = []owner{{access.ClientOf(e.Client, r.Meta.Actor), at}}
		o.began, o.correlation, o.trace = at, r.Meta.Correlation, r.Meta.Trace
		if o.Claimed = e.Claims(); !o.Claimed {
			o.confirmed = at
		}
	case tx.Resubmitted:
		o.owners = append(o.owners[:len(o.owners):len(o.owners)], owner{access.ClientOf(e.Client, r.Meta.Actor), at})
	case tx.GroupConfirmed:
		if o.Claimed {
			o.Claimed, o.confirmed = false, at
		}
	default: // the other events change no owner
	}
	return o, nil
}

// Clients returns the clients that own the transaction, in order of submission.
func (o Ownership) Clients() []string { return o.At(o.Version).clients() }

// At returns the ownership as of a version of the stream.
func (o Ownership) At(v eventlog.Version) Ownership {
	if v >= o.Version {
		return o
	}
	o.Version = v
	return o.until(func(s step) bool { return s.version <= v })
}

// Before returns the ownership as of a position of the log. The ownership must contain every event
// of the stream up to that position. Its Version stays.
func (o Ownership) Before(p eventlog.Position) Ownership {
	return o.until(func(s step) bool { return s.position < p })
}

// Reaches reports whether an event of the stream at or behind a position was applied.
func (o Ownership) Reaches(p eventlog.Position) bool { return o.last.position >= p }

// until returns the ownership without the owners, and without the confirmation, that came after
// the events that are among the first ones.
func (o Ownership) until(among func(step) bool) Ownership {
	o.Claimed = o.confirmed.version == 0 || !among(o.confirmed)
	n := 0
	for n < len(o.owners) && among(o.owners[n].since) {
		n++
	}
	o.owners = o.owners[:n:n]
	return o
}

// Submitted reports whether the metadata of an event name the request that submitted the
// transaction first.
func (o Ownership) Submitted(m eventlog.Meta) bool {
	return m.Correlation == o.correlation && m.Trace == o.trace
}

// Led reports whether the metadata of an event name an event by which the transaction itself came
// into its group: its acceptance or the confirmation of its sender.
func (o Ownership) Led(m eventlog.Meta) bool {
	return o.began.version > 0 && m.Causation == o.began.id || o.confirmed.version > 0 && m.Causation == o.confirmed.id
}

// Others counts the events, up to a version, that only say that a client submitted the
// transaction too, where among reports false for that client.
func (o Ownership) Others(upto eventlog.Version, among func(client string) bool) (n eventlog.Version) {
	for _, w := range o.owners[min(1, len(o.owners)):] {
		if w.since.version <= upto && !among(w.client) {
			n++
		}
	}
	return n
}

func (o Ownership) clients() []string {
	all := make([]string, len(o.owners))
	for i, w := range o.owners {
		all[i] = w.client
	}
	return all
}
