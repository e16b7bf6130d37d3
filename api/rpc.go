package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// RPC answers requests to /rpc; package jsonrpc provides it.
type RPC struct {
	// Answer answers a request; its context ends when the answer has been sent. It returns nil
	// if the request holds only notifications. The only error is the error of Charge.
	Answer func(ctx context.Context, r RPCRequest) ([]byte, error)
	// Within bounds how long an answer may take.
	Within time.Duration
}

// Place waits for one of the places of some kind of work. leave gives it back.
type Place func(ctx context.Context) (leave func(), err error)

// Placed runs a query in a place.
func Placed[T any](ctx context.Context, place Place, query func(context.Context) (T, error)) (result T, err error) {
	leave, err := place(ctx)
	if err != nil {
		return result, err
	}
	defer leave()
	return query(ctx)
}

// RPCRequest is one request to /rpc.
type RPCRequest struct {
	Chain string // from the path; empty if the path has none
	Body  []byte
	Meta  eventlog.Meta // for the events that the request causes
	// Client is the client that sent the request.
	Client string
	// Submit accepts the transactions that the client may submit.
	Submit *commands.Submit
	// Shows reports whether the client may see everything about a transaction that the service
	// holds, including its signature and calls.
	Shows func(ctx context.Context, held tx.State) (bool, error)
	// Search begins the search for a transaction that may be another client's. If nothing is
	// shown of it, the call waits for absent before it is answered, so that the time of the answer
	// does not depend on the search.
	Search func() (absent func(ctx context.Context))
	// Counts returns which transactions of a sender count as the client's own.
	Counts func(sender chain.Address) Counts
	// Charge brings the request's total charge to n calls, before they are decoded.
	Charge func(n int) error
	// Decode has read return a transaction's bytes, and decode make the text that shows it, in one of
	// the places for that. The call costs one unit for each 16 KiB of the bytes or of the text.
	Decode func(ctx context.Context, read func(context.Context) (raw []byte, err error), decode func(raw []byte) (text []byte, err error)) (text []byte, err error)
	// NextFree has read find the next free nonce of a sequence, at or after from; each of its
	// queries takes a place. The call costs one unit for each hundred nonces in between.
	NextFree func(ctx context.Context, from uint64, read func(ctx context.Context, place Place) (next uint64, err error)) (next uint64, err error)
	// Weigh charges one unit for each 16 KiB of a node's answer, beyond the first.
	Weigh func(bytes int)
	// Rest lets a call wait, unless the client's share of waiting requests is used up. leave
	// ends the wait.
	Rest func() (leave func(), ok bool)
	// Again charges one unit for another round of calls to nodes while a call waits, and reports
	// whether the client could pay for it now.
	Again func() bool
	// Problem returns the problem for an error.
	Problem func(error) Problem
}

// Counts selects the transactions of one sender that count as a client's own: all of them, or
// the transactions submitted by clients with these names. Without names there are none.
type Counts struct {
	All     bool
	Clients []string
}

// counts returns which transactions of a sender count as the viewer's own.
func (v viewer) counts(sender chain.Address) Counts {
	switch {
	case v.alone:
		return Counts{All: true}
	case !v.within(sender):
		return Counts{}
	case len(v.bound()) > 0:
		return Counts{All: true} // senders that are only claimed never count
	}
	return Counts{Clients: v.names}
}

// shows reports whether the viewer may see everything about a transaction that is held.
func (a *api) shows(ctx context.Context, v viewer, held tx.State) (bool, error) {
	if v.alone || held.Status == tx.StatusAbsent {
		return v.alone, nil
	}
	o, err := a.ownership(ctx, tx.Stream(held.Accepted.Chain, held.Accepted.Hash), 0)
	return v.owns(o) || v.reads(o) && !secret(held), err
}

// rpc answers POST /rpc and POST /rpc/{chainId}.
func (a *api) rpc(w http.ResponseWriter, r *http.Request) error {
	if a.RPC.Answer == nil {
		return ErrNotFound.Because("JSON-RPC is switched off here")
	}
	body, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.RPC.Within)
	defer cancel()
	// A request that waits for a receipt runs longer than other requests, but the client still
	// has only WriteTimeout to read the answer.
	conn := http.NewResponseController(w)
	if err := conn.SetWriteDeadline(time.Now().Add(a.RPC.Within + a.Limits.WriteTimeout)); err != nil {
		return fmt.Errorf("extend the response's deadline: %w", err)
	}
	answer, err := a.answerRPC(ctx, w, r, body)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(a.Limits.WriteTimeout)) // if this fails, the later deadline holds
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(answer) // an error means that the client is gone
	return nil
}

// answerRPC answers the calls of a request, and charges for the bytes of transactions and the
// nonces that they read. Calls are answered concurrently.
func (a *api) answerRPC(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte) ([]byte, error) {
	on := exchangeOf(r)
	v := a.viewer(on)
	var calls int         // in the request: each costs at least one unit
	var more atomic.Int64 // units of calls beyond the first of each
	var again sync.Mutex
	defer func() { on.chargeAfter(w, calls+int(more.Load())) }()
	return a.RPC.Answer(ctx, RPCRequest{
		Chain: mux.Vars(r)["chainId"], Body: body, Meta: on.meta(),
		Client: on.client(), Submit: a.submitter(on),
		Shows:  func(ctx context.Context, held tx.State) (bool, error) { return a.shows(ctx, v, held) },
		Search: func() func(context.Context) { return on.search().foundNothing },
		Counts: v.counts,
		Charge: func(n int) error { calls = n; return a.chargeUpTo(w, on, n) },
		Decode: func(ctx context.Context, read func(context.Context) ([]byte, error), decode func([]byte) ([]byte, error)) ([]byte, error) {
			text, size, err := decoded(ctx, on, read, decode)
			more.Add(int64(max(on.readUnits(max(size, len(text)))-1, 0)))
			return text, err
		},
		NextFree: func(ctx context.Context, from uint64, read func(context.Context, Place) (uint64, error)) (next uint64, err error) {
			defer func() { more.Add(int64(max(on.nonceUnits(from, next)-1, 0))) }()
			return read(ctx, on.noncePlace)
		},
		Weigh: func(bytes int) { more.Add(int64(max(on.readUnits(bytes)-1, 0))) },
		Rest:  on.rest,
		Again: func() bool {
			again.Lock() // the calls of a batch run at once
			defer again.Unlock()
			if !on.affords(w, 1) {
				return false
			}
			more.Add(1)
			return true
		},
		Problem: func(err error) Problem {
			p := a.problem(err)
			p.RequestID = on.id
			return p
		},
	})
}
