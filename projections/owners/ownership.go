package owners

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Ownership is the owners of one transaction, as of a version of its stream. It follows from
// the stream alone, and not from the read models.
type Ownership struct {
	Version event.Version // of the last event that was applied
	Sender  chain.Address
	Group   *chain.GroupID // the group that the transaction claims or has joined
	// Claimed: an access key signed, and the chain has not confirmed yet that it may.
	Claimed bool

	confirmed event.Version // the version that confirmed the sender; 0 while it is only claimed
	owners    []owner
}

// owner is a client, and the version since which it owns the transaction.
type owner struct {
	client string
	since  event.Version
}

// Evolve applies the next event of the stream; an event that was applied before is skipped.
func (o Ownership) Evolve(r event.Recorded, codec event.Codec[tx.Event]) (Ownership, error) {
	switch {
	case r.Version <= o.Version:
		return o, nil
	case r.Version != o.Version+1:
		return o, fmt.Errorf("%s: version %d follows %d", r.Stream, r.Version, o.Version)
	}
	if r.Version > 1 && !Filter().Passes("", r.Name) { // includes events that this version of the program does not know
		o.Version = r.Version
		return o, nil
	}
	e, err := codec.Decode(r.Name, r.Data)
	if err != nil {
		return o, err
	}
	if _, first := e.(tx.Accepted); first != (r.Version == 1) {
		return o, fmt.Errorf("%s: version %d is %s", r.Stream, r.Version, r.Name)
	}
	o.Version = r.Version
	switch e := e.(type) {
	case tx.Accepted:
		o.Sender, o.Group = e.Sender, e.Group
		o.owners = []owner{{access.ClientOf(e.Client, r.Meta.Actor), r.Version}}
		if o.Claimed = e.Claims(); !o.Claimed {
			o.confirmed = r.Version
		}
	case tx.Resubmitted:
		o.owners = append(o.owners[:len(o.owners):len(o.owners)], owner{access.ClientOf(e.Client, r.Meta.Actor), r.Version})
	case tx.GroupConfirmed:
		if o.Claimed {
			o.Claimed, o.confirmed = false, r.Version
		}
	default: // the other events change no owner
	}
	return o, nil
}

// Clients returns the clients that own the transaction, in order of submission.
func (o Ownership) Clients() []string { return o.At(o.Version).clients() }

// At returns the ownership as of a version of the stream.
func (o Ownership) At(v event.Version) Ownership {
	if v >= o.Version {
		return o
	}
	o.Version, o.Claimed = v, o.confirmed == 0 || o.confirmed > v
	n := 0
	for n < len(o.owners) && o.owners[n].since <= v {
		n++
	}
	o.owners = o.owners[:n:n]
	return o
}

// Others counts the events, up to a version, that only say that a client submitted the
// transaction too, where among reports false for that client.
func (o Ownership) Others(upto event.Version, among func(client string) bool) (n event.Version) {
	for _, w := range o.owners[min(1, len(o.owners)):] {
		if w.since <= upto && !among(w.client) {
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
