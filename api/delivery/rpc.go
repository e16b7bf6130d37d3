package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// RPC returns the answer of the routes of /rpc for another listener than delivery's own, where a pool may
// follow the chain in the path. A client's reads there show what delivery's own show. It uses the
// limits, the access, the submitter and the endpoint of the configuration alone.
func RPC(c Config) func(rest.Request) error { return newAPI(c).rpc }

// counts returns which transactions of a sender count as the viewer's own.
func (v viewer) counts(sender chain.Address) rpcroute.Counts {
	switch {
	case v.alone:
		return rpcroute.Counts{All: true}
	case !v.within(sender):
		return rpcroute.Counts{}
	case len(v.bound()) > 0:
		return rpcroute.Counts{All: true} // senders that are only claimed never count
	}
	return rpcroute.Counts{Clients: v.names}
}

// shows reports whether the viewer may see everything about a transaction that is held.
func (a *api) shows(ctx context.Context, v viewer, held tx.State) (bool, error) {
	if v.alone || held.Status == tx.StatusAbsent {
		return v.alone, nil
	}
	o, err := a.ownership(ctx, tx.Stream(held.Accepted.Chain, held.Accepted.Hash), 0)
	return v.owns(o) || v.reads(o) && !secret(held), err
}

// rpc answers POST /rpc, POST /rpc/{chainId} and, on another listener, POST /rpc/{chainId}/{pool}.
func (a *api) rpc(r rest.Request) error {
	if a.RPC.Answer == nil {
		return rest.ErrNotFound.Because("JSON-RPC is switched off here")
	}
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.RPC.Within)
	defer cancel()
	// A request that waits for a receipt runs longer than other requests, but the client still
	// has only WriteTimeout to read the answer.
	w := r.Writer()
	conn := http.NewResponseController(w)
	if err := conn.SetWriteDeadline(time.Now().Add(a.RPC.Within + a.Limits.WriteTimeout)); err != nil {
		return fmt.Errorf("extend the response's deadline: %w", err)
	}
	answer, err := a.answerRPC(ctx, r, body)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(a.Limits.WriteTimeout)) // if this fails, the later deadline holds
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	r.Answering().Set("Content-Type", "application/json")
	r.Answering().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(answer) // an error means that the client is gone
	return nil
}

// answerRPC answers the calls of a request, and charges for the bytes of transactions and the
// nonces that they read. Calls are answered concurrently.
func (a *api) answerRPC(ctx context.Context, r rest.Request, body []byte) ([]byte, error) {
	v := a.viewer(r)
	pool, err := url.PathUnescape(mux.Vars(r.Request)["pool"])
	if err != nil {
		return nil, rest.ErrNotFound
	}
	var asked int         // in the request: each costs at least one unit
	var more atomic.Int64 // units of calls beyond the first of each
	var again sync.Mutex
	defer func() { r.ChargeAfter(asked + int(more.Load())) }()
	return a.RPC.Answer(ctx, rpcroute.Request{
		Chain: mux.Vars(r.Request)["chainId"], Pool: pool, Body: body, Meta: r.Meta(),
		Key: r.Key, IdempotencyKeys: r.Header.Values("Idempotency-Key"),
		Client: r.Client(), Submit: a.submitter(r),
		Shows:  func(ctx context.Context, held tx.State) (bool, error) { return a.shows(ctx, v, held) },
		Search: r.Search,
		Counts: v.counts,
		Charge: func(n int) error { asked = n; return r.Charge(n) },
		Decode: func(ctx context.Context, read func(context.Context) ([]byte, error), decode func([]byte) ([]byte, error)) ([]byte, error) {
			text, size, err := decoded(ctx, a.decodes, r, read, decode)
			more.Add(int64(max(r.ReadUnits(max(size, len(text)))-1, 0)))
			return text, err
		},
		NextFree: func(ctx context.Context, from uint64, read func(context.Context, rest.Place) (uint64, error)) (next uint64, err error) {
			defer func() { more.Add(int64(max(nonceUnits(r, from, next)-1, 0))) }()
			return read(ctx, func(ctx context.Context) (func(), error) { return a.noncePlace(ctx, r) })
		},
		List:  r.EnterList,
		Weigh: func(bytes int) { more.Add(int64(max(r.ReadUnits(bytes)-1, 0))) },
		Rest:  r.RestCall,
		Again: func() bool {
			again.Lock() // the calls of a batch run at once
			defer again.Unlock()
			if !r.Affords(1) {
				return false
			}
			more.Add(1)
			return true
		},
		Problem: r.ProblemUnlogged,
	})
}
