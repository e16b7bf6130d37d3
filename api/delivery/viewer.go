package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// viewer is the client of a request, with its access rights. A transaction belongs to the
// clients that submitted it, within the senders that the key is bound to, and to the keys bound
// to its sender. For all other clients it does not exist: they get 404, never 403, which would
// reveal that it exists.
type viewer struct {
	// alone is true if there are no keys, so that all requests come from one client.
	alone bool
	key   *access.Key // nil for a request without a key
	// names are the client's name, and the ids of its keys for events recorded before clients
	// had names.
	names []string
}

// client is the client's name; empty for requests without a key.
func (v viewer) client() string { return v.names[0] }

// viewer returns the viewer of a request.
func (a *api) viewer(r rest.Request) viewer {
	if key, keyed := r.Key(); keyed {
		return a.viewerOf(&key)
	}
	return a.viewerOf(nil)
}

// viewerOf returns the viewer of a request with a key; nil for a request without one.
func (a *api) viewerOf(key *access.Key) viewer {
	keys := a.Access.Current()
	v := viewer{alone: !keys.Closed(), key: key, names: []string{""}}
	if key == nil {
		return v
	}
	v.names[0] = key.Owner()
	if own := key.ID.String(); own != v.names[0] {
		v.names = append(v.names, own)
	}
	if key.Client != "" {
		for id, entry := range keys.Keys {
			if entry.Key.Client == key.Client && id != key.ID {
				v.names = append(v.names, id.String())
			}
		}
	}
	return v
}

// audits reports whether the viewer reads every client's transactions, within its senders.
func (v viewer) audits() bool { return v.alone || v.key != nil && v.key.Audits() }

// bound returns the senders that the viewer's key is bound to; none for an unbound key.
func (v viewer) bound() []chain.Address {
	if v.key == nil {
		return nil
	}
	return v.key.Senders
}

// within reports whether the viewer's key may see a sender at all.
func (v viewer) within(sender chain.Address) bool { return v.key == nil || v.key.Sees(sender) }

// is reports whether client is one of the viewer's names.
func (v viewer) is(client string) bool { return slices.Contains(v.names, client) }

// owns reports whether a transaction belongs to the viewer.
func (v viewer) owns(o owners.Ownership) bool {
	clients := o.Clients()
	if v.alone || len(clients) == 0 {
		return v.alone
	}
	if v.key == nil {
		return slices.ContainsFunc(clients, v.is)
	}
	for i, c := range clients {
		if v.is(c) {
			clients[i] = v.key.Owner()
		}
	}
	return v.key.Owns(clients, o.Sender, o.Claimed)
}

// reads reports whether the viewer may read a transaction. Secret parts are excluded while no
// node has the bytes: see [secret].
func (v viewer) reads(o owners.Ownership) bool {
	return v.owns(o) || o.Version > 0 && v.audits() && v.within(o.Sender)
}

// changes reports whether the viewer may change a transaction. The scope audit gives no right
// to change.
func (v viewer) changes(o owners.Ownership) bool {
	return v.owns(o) || o.Version > 0 && v.key != nil && v.key.May(access.Admin) && v.within(o.Sender)
}

// version returns a transaction's version as shown to the viewer. It does not count submissions
// by other clients, which it would reveal otherwise.
func (v viewer) version(row transactions.Row) eventlog.Version {
	if v.audits() {
		return row.Version
	}
	told := row.Version
	for _, client := range row.State.Resubmitters {
		if !v.is(client) {
			told--
		}
	}
	return told
}

// recorded returns the version in the log of the event that the viewer sees with version told.
func (v viewer) recorded(o owners.Ownership, told eventlog.Version) eventlog.Version {
	if v.audits() {
		return told
	}
	for at := told; ; {
		next := told + o.Others(at, v.is)
		if next == at {
			return at
		}
		at = next
	}
}

// narrow restricts a list to the transactions that the viewer may read.
func (v viewer) narrow(f *transactions.Filters) {
	switch {
	case v.alone:
	case v.audits():
		f.Senders = v.bound()
	default:
		f.Within = &transactions.Within{Owners: v.names, Senders: v.bound()}
	}
}

// list returns a text that differs between lists shown to different viewers. Cursors are bound
// to it.
func (v viewer) list() string {
	switch {
	case v.audits() && len(v.bound()) == 0:
		return ""
	case v.audits():
		return fmt.Sprint("&senders=", v.bound())
	case v.key == nil:
		return "&client"
	}
	return fmt.Sprint("&client=", v.key.Owner(), "&senders=", v.bound())
}

// members returns the client names whose members of a sender's groups the viewer may see; nil
// for all members. A member's sender is confirmed, so a key bound to the sender may see all
// members.
func (v viewer) members() []string {
	if v.audits() || len(v.bound()) > 0 {
		return nil
	}
	return v.names
}

// sums reports whether the members of a sender's groups that the viewer may see are the viewer's
// own, so that it pays for them. An auditor with an unbound key reads other clients' members.
func (v viewer) sums(sender chain.Address) bool {
	return v.within(sender) && (v.alone || len(v.bound()) > 0 || !v.audits())
}

// secret reports whether no node can have a transaction's bytes yet. Until then only its owners
// see the bytes, the signature and the calls.
func secret(s tx.State) bool { return !s.Handed && s.Verdict != tx.StatusExecuted }

// ownership returns the owners of a transaction, from its stream up to a version; 0 means up to
// the end. Results are cached, as ownership only grows.
func (a *api) ownership(ctx context.Context, stream eventlog.Stream, upto eventlog.Version) (owners.Ownership, error) {
	known := a.owned.recall(stream)
	if upto > 0 && known.Version >= upto {
		return known.At(upto), nil
	}
	return a.advance(ctx, stream, known, upto)
}

// ownershipAt returns the owners of a transaction as of one of its events, which may be the
// next event after the cached version.
func (a *api) ownershipAt(ctx context.Context, e eventlog.Recorded) (owners.Ownership, error) {
	known := a.owned.recall(e.Stream)
	if e.Version != known.Version+1 {
		return a.ownership(ctx, e.Stream, e.Version)
	}
	next, err := known.Evolve(e, a.Submit.Transactions.Codec)
	if err == nil {
		a.owned.remember(e.Stream, next)
	}
	return next, err
}

// ownershipBefore returns the owners of a transaction as of a position of the log.
func (a *api) ownershipBefore(ctx context.Context, stream eventlog.Stream, p eventlog.Position) (owners.Ownership, error) {
	o := a.owned.recall(stream)
	if !o.Reaches(p) {
		var err error
		if o, err = a.advance(ctx, stream, o, 0); err != nil {
			return o, err
		}
	}
	return o.Before(p), nil
}

// advance applies the events of the stream that an ownership does not contain yet.
func (a *api) advance(ctx context.Context, stream eventlog.Stream, o owners.Ownership, upto eventlog.Version) (owners.Ownership, error) {
	if err := rest.LookUp(ctx); err != nil {
		return o, err
	}
	for recorded, err := range a.stream(ctx, stream, o.Version) {
		if err == nil && upto > 0 && recorded.Version > upto {
			break
		}
		if err == nil {
			o, err = o.Evolve(recorded, a.Submit.Transactions.Codec)
		}
		if err != nil {
			return o, err
		}
	}
	if o.Version > 0 {
		a.owned.remember(stream, o)
	}
	return o, nil
}

// owned caches the ownership of transactions.
type owned struct {
	rest.Recent[eventlog.Stream, owners.Ownership]
}

func (k *owned) recall(stream eventlog.Stream) owners.Ownership {
	o, _ := k.Recall(stream)
	return o
}

func (k *owned) remember(stream eventlog.Stream, o owners.Ownership) {
	k.Remember(stream, o, func(known owners.Ownership) bool { return o.Version >= known.Version })
}
