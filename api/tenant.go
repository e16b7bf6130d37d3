package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// A key may be bound to senders. What belongs to others is then not there for it:
// 404, never 403, which would tell that it is.

// keepsToSenders lists the routes, by their operation, that keep a bound key to its
// senders by themselves. On a route that is not listed, and whose path names neither
// a transaction nor a sender, a bound key is refused.
var keepsToSenders = []string{ //nolint:gochecknoglobals // a constant, if Go had such
	"POST /v1/transactions", // submitter
	"GET /v1/transactions",  // tenantFilters
	"POST /rpc",             // RPCRequest.Submit and Sees
	"POST /rpc/{chainId}",
	"GET /v1/events", // eventFilter.sees
}

// within keeps a bound key to what it may see.
func (a *api) within(r *http.Request, on *exchange, key access.Key) error {
	if len(key.Senders) == 0 {
		return nil
	}
	vars := mux.Vars(r)
	if text, ok := vars["sender"]; ok {
		text, err := url.PathUnescape(text)
		if err != nil {
			return ErrNotFound
		}
		if sender, err := chain.ParseAddress(text); err != nil || !key.Sees(sender) {
			return ErrNotFound
		}
		return nil
	}
	if _, ok := vars["hash"]; ok {
		return a.ownsTransaction(r, key)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if !slices.Contains(keepsToSenders, method+" "+on.route) {
		return ErrForbidden.Because("the key is bound to senders, and this is not about one")
	}
	return nil
}

// ownsTransaction looks up whose transaction a path names.
func (a *api) ownsTransaction(r *http.Request, key access.Key) error {
	hash, err := hashOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.work(r)
	defer cancel()
	rows, err := a.Query.Find(ctx, 0, hash)
	if err != nil {
		return err
	}
	sees := func(row transactions.Row) bool { return key.Sees(row.State.Accepted.Sender) }
	if slices.ContainsFunc(rows, sees) {
		return nil
	}
	// It may be too new for the read model, or too old. What is another's is looked for
	// as far as what is not there, and refused before anything else is read: neither the
	// answer nor the time that it takes tells one from the other.
	for _, id := range a.candidates(0) {
		row, err := a.fold(ctx, transactions.Row{}, tx.Stream(id, hash))
		switch {
		case err != nil:
			return err
		case row.Version > 0 && sees(row):
			return nil
		}
	}
	return tx.ErrUnknown
}

// submitter takes transactions on for whoever sent a request.
func (a *api) submitter(on *exchange) *commands.Submit {
	if on.key == nil || len(on.key.Senders) == 0 {
		return a.Submit
	}
	bound, key := *a.Submit, on.key
	bound.Allow = func(t chain.Signed) error {
		if !key.Sees(t.Sender) {
			return ErrForeignSender.Because("the key is bound to senders, and %s is none of them", t.Sender)
		}
		return nil
	}
	return &bound
}
