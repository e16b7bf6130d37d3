package wallets

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// sendTransaction answers eth_sendTransaction with the first hash of the intent. If there is none in
// time, the error names the intent, which stays.
func (w *wallets) sendTransaction(ctx context.Context, c jsonrpc.Call) (any, error) {
	if err := maySubmit(c.Request); err != nil {
		return nil, err
	}
	r, err := w.transaction(c)
	if err != nil {
		return nil, err
	}
	a, err := w.create(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return w.firstHash(ctx, c, a)
}

// create accepts an intent, and charges for the events that it read.
func (w *wallets) create(ctx context.Context, c jsonrpc.Call, r intent.Request) (intake.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Work)
	defer cancel()
	a := w.Intake.Create(ctx, r, c.Meta)
	if c.Weigh(a.Read); a.Err != nil && commands.IsRefusal(a.Err) {
		return a, refused(c.Request, a.Err)
	}
	return a, a.Err
}

// pending is the data of an error about an intent that was accepted.
type pending struct {
	Intent chain.IntentID `json:"intent"`
	Key    string         `json:"idempotencyKey"`
	Status intent.Status  `json:"status"`
	Reason intent.Reason  `json:"reason,omitempty"`
	Detail string         `json:"detail,omitempty"`
}

// firstHash waits for the first attempt of an intent.
func (w *wallets) firstHash(ctx context.Context, c jsonrpc.Call, a intake.Answer) (any, error) {
	look := func(ctx context.Context, waits *tail.Wait) (bool, error) {
		seen := handler.Result[intent.State]{State: a.State, Version: a.Version}
		seen, err := tail.Refresh(ctx, waits, intent.Stream(a.State.Requested.ID), seen, w.Intake.Desk.Refresh)
		a.State, a.Version = seen.State, seen.Version
		_, _, made := a.State.FirstHash()
		return err == nil && (made || a.State.End != nil), err
	}
	why := w.await(ctx, c, look)
	if why != nil { // it may have come since it was looked for
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Work)
		defer cancel()
		if _, err := look(again, nil); err != nil {
			return nil, err
		}
	}
	hash, _, made := a.State.FirstHash()
	state := pending{Intent: a.State.Requested.ID, Key: a.State.Requested.Request.Key, Status: a.State.Status()}
	switch end := a.State.End; {
	case made:
		return hash, nil
	case end != nil:
		state.Reason, state.Detail = end.Reason, end.Detail
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: fmt.Sprintf("the transaction was not sent: intent %s is %s", state.Intent, ended(*end)), Data: state}
	case errors.Is(why, context.DeadlineExceeded):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeStillWaiting, Message: fmt.Sprintf("the transaction was accepted as intent %s, and has no hash after %v; it will be sent", state.Intent, w.Wait), Data: state}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeStillWaiting, Message: fmt.Sprintf("the transaction was accepted as intent %s and will be sent, but this replica cannot wait for its hash: repeat the call", state.Intent), Data: state}
}

// ended describes an end without a transaction.
func ended(e intent.End) string {
	text := string(e.Status)
	if e.Reason != "" {
		text += ": " + string(e.Reason)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// await calls look until it returns true. The error is the reason why it stopped before.
func (w *wallets) await(ctx context.Context, c jsonrpc.Call, look func(context.Context, *tail.Wait) (bool, error)) error {
	leave, room := c.Rest()
	defer leave()
	if !room {
		return tail.ErrTooManyWaiters
	}
	ctx, cancel := context.WithTimeout(ctx, w.Wait)
	defer cancel()
	return w.Tail.Until(ctx, look)
}
