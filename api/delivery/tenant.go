package delivery

import (
	"context"
	"net/url"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// keeps is how a route restricts a client to its own transactions. It belongs to the route itself: the
// same path on another listener is another route.
type keeps string

const (
	// nobody: the answers concern no transaction, sender or client. A key that is bound to
	// senders is refused.
	nobody keeps = ""
	// byHash: the transaction in the path must be the client's. It is looked up before the
	// route's endpoint is called.
	byHash keeps = "hash"
	// bySender: a bound key must see the sender in the path. The endpoint restricts the answer
	// to the client's own transactions.
	bySender keeps = "sender"
	// byItself: the endpoint restricts the answer to the client's own transactions, and bound
	// keys to their senders.
	byItself keeps = "itself"
)

// within refuses a request about a transaction or sender that is not the client's.
func (a *api) within(r rest.Request, t route) error {
	v := a.viewer(r)
	switch t.keeps {
	case byHash:
		return a.reaches(r, v, t.scope)
	case bySender:
		text, err := url.PathUnescape(mux.Vars(r.Request)["sender"])
		if err != nil || len(v.bound()) == 0 {
			return nil // the endpoint reports the error
		}
		if sender, err := chain.ParseAddress(text); err != nil || !v.within(sender) {
			return rest.ErrNotFound
		}
	case byItself:
	case nobody:
		if len(v.bound()) > 0 {
			return rest.ErrForbidden.Because("the key is bound to senders, and this request names no sender")
		}
	}
	return nil
}

// reaches looks up whether the client may read or change the transaction in the path.
func (a *api) reaches(r rest.Request, v viewer, scope access.Scope) error {
	if v.alone {
		r.Own()
		return nil
	}
	hash, err := hashOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	chains, err := a.chainsOf(ctx, hash)
	if err != nil {
		return err
	}
	// A transaction of another client is refused before anything but its owners is read. Their
	// look-up takes longer than one of an unknown transaction: see [rest.Request.FoundNothing].
	reach, owns := false, false
	for _, id := range chains {
		o, err := a.ownership(ctx, tx.Stream(id, hash), 0)
		if err != nil {
			return err
		}
		if scope == access.Read && v.reads(o) || scope != access.Read && v.changes(o) {
			reach, owns = true, v.owns(o)
		}
	}
	if !reach {
		return tx.ErrUnknown
	}
	if owns {
		r.Own()
	}
	return nil
}

// chainsOf lists the chains that may have a transaction. A chain that is no longer served may
// still have rows.
func (a *api) chainsOf(ctx context.Context, hash chain.Hash) ([]chain.ID, error) {
	rows, err := a.Query.Find(ctx, 0, hash)
	if err != nil {
		return nil, err
	}
	chains := a.candidates(0)
	for _, row := range rows {
		if id := row.State.Accepted.Chain; !a.serves(id) {
			chains = append(chains, id)
		}
	}
	return chains, nil
}

// serves reports whether a chain is served.
func (a *api) serves(id chain.ID) bool {
	_, served := a.Submit.Decoders[id]
	return served
}

// submitter accepts transactions for the client that sent a request.
func (a *api) submitter(r rest.Request) *commands.Submit {
	key, keyed := r.Key()
	if !keyed || len(key.Senders) == 0 {
		return a.Submit
	}
	bound := *a.Submit
	bound.Allow = func(t chain.Signed) error {
		if !key.Sees(t.Sender) {
			return rest.ErrForeignSender.Because("the key is bound to senders other than %s", t.Sender)
		}
		return nil
	}
	return &bound
}
