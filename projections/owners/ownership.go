package owners

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Ownership is whose one transaction is, as its stream says up to a version. It follows
// from the stream alone, whatever the read models hold.
type Ownership struct {
	Version event.Version // of the last event that was added
	Sender  chain.Address
	Group   *chain.GroupID // that the transaction claims, or is in
	// Claimed: an access key signed, and the chain has not confirmed yet that it may.
	Claimed bool

	confirmed event.Version // since which the sender is no claim; 0 while it is one
	owners    []owner
}

// owner is a client, and since which version the transaction belongs to it.
type owner struct {
	client string
	since  event.Version
}

// Evolve adds the next event of the stream; an event that was added before is skipped.
func (o Ownership) Evolve(r event.Recorded, codec event.Codec[tx.Event]) (Ownership, error) {
	switch {
	case r.Version <= o.Version:
		return o, nil
	case r.Version != o.Version+1:
		return o, fmt.Errorf("%s: version %d follows %d", r.Stream, r.Version, o.Version)
	}
	if r.Version > 1 && !Filter().Passes("", r.Name) { // also one that this version does not know
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
	default: // the others change no owner
	}
	return o, nil
}

// Clients returns the clients that own the transaction, the first one first.
func (o Ownership) Clients() []string { return o.At(o.Version).clients() }

// At returns the ownership as it was when the stream had a version.
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

// Others returns how many events of the stream, up to a version, say only that a client
// submitted the transaction too that is not among those.
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
