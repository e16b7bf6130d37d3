package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// RPC answers what is posted to /rpc; package jsonrpc makes one.
type RPC struct {
	// Answer answers a request; its context ends when the answer has been sent. No
	// answer (nil) is due to notifications alone; the error is Charge's.
	Answer func(ctx context.Context, r RPCRequest) ([]byte, error)
	// Within bounds how long an answer may take.
	Within time.Duration
}

// RPCRequest is one request to /rpc.
type RPCRequest struct {
	Chain string // as the path names it; empty when it does not
	Body  []byte
	Meta  event.Meta // for the events that it causes
	// Client is the client that sent the request.
	Client string
	// Submit takes on what the client may submit.
	Submit *commands.Submit
	// Sees reports whether the client may see a sender's transactions.
	Sees func(sender chain.Address) bool
	// Charge charges the request as n calls in all, before they are decoded.
	Charge func(n int) error
	// Rest lets a call wait, unless as many of the client's requests do as may; leave
	// ends it.
	Rest func() (leave func(), ok bool)
	// Problem is what an error comes to.
	Problem func(error) Problem
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
	// Who waits for a receipt waits longer than others do, and may take no longer to
	// read the answer.
	conn := http.NewResponseController(w)
	if err := conn.SetWriteDeadline(time.Now().Add(a.RPC.Within + a.Limits.WriteTimeout)); err != nil {
		return fmt.Errorf("move the deadline of the answer: %w", err)
	}
	on := exchangeOf(r)
	answer, err := a.RPC.Answer(ctx, RPCRequest{
		Chain: mux.Vars(r)["chainId"], Body: body, Meta: on.meta(),
		Client: on.client(), Submit: a.submitter(on),
		Sees:   func(sender chain.Address) bool { return on.key == nil || on.key.Sees(sender) },
		Charge: func(n int) error { return a.chargeUpTo(w, on, n) },
		Rest:   func() (func(), bool) { return a.waiting.rest(on, a.Limits.Connections) },
		Problem: func(err error) Problem {
			p := a.problem(err)
			p.RequestID = on.id
			return p
		},
	})
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(a.Limits.WriteTimeout)) // else the later one holds
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(answer) // the client has gone: there is nobody to tell
	return nil
}
