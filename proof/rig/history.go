package rig

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// History records clients' requests and responses, for a judge.
type History struct {
	mu    sync.Mutex
	calls []promises.Call
}

type historyKey struct{}

// Record returns a context under which calls are recorded.
func (h *History) Record(ctx context.Context) context.Context {
	return context.WithValue(ctx, historyKey{}, h)
}

// Calls are the calls recorded so far, in the order in which they ended.
func (h *History) Calls() []promises.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]promises.Call(nil), h.calls...)
}

// note records calls if the context has a History.
func note(ctx context.Context, began time.Time, calls ...promises.Call) {
	h, ok := ctx.Value(historyKey{}).(*History)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	ended := time.Now()
	for _, c := range calls {
		c.Began, c.Ended = began, ended
		h.calls = append(h.calls, c)
	}
}

// noteSubmit records a submission, one call per transaction.
func noteSubmit(ctx context.Context, began time.Time, id chain.ID, raws [][]byte, told *reply, results []Result) {
	calls := make([]promises.Call, len(raws))
	for i, raw := range raws {
		c := promises.Call{Kind: promises.Submit, Chain: id, Hash: chain.Keccak(raw), Result: answered(told)}
		c.Overload, c.Later = overload(told)
		if c.Result == promises.OK {
			switch {
			case i >= len(results):
				c.Result = promises.Unknown
			case !results[i].OK:
				c.Result = promises.Refused
			default:
				c.Hash = results[i].TxHash
			}
		}
		calls[i] = c
	}
	note(ctx, began, calls...)
}

// noteGet records a read of a transaction.
func noteGet(ctx context.Context, began time.Time, id chain.ID, hash chain.Hash, told *reply, t Transaction) {
	c := promises.Call{Kind: promises.Read, Chain: cmp.Or(id, TempoChain), Hash: hash, Result: answered(told), Status: tx.Status(t.Status)}
	if told != nil && told.code == http.StatusNotFound {
		c.Result, c.Missing = promises.OK, true
	}
	c.Overload, c.Later = overload(told)
	note(ctx, began, c)
}

// answered classifies a reply; nil is no reply.
func answered(told *reply) promises.Result {
	switch {
	case told == nil:
		return promises.Unknown
	case told.code == http.StatusOK:
		return promises.OK
	}
	return promises.Refused
}

func overload(told *reply) (overload, later bool) {
	if told == nil || told.code != http.StatusTooManyRequests && told.code != http.StatusServiceUnavailable {
		return false, false
	}
	return true, told.header.Get("Retry-After") != ""
}
