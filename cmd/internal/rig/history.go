package rig

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// History records clients' requests and responses, for a judge.
type History struct {
	mu    sync.Mutex
	calls []promise.Call
}

type historyKey struct{}

// Record returns a context under which calls are recorded.
func (h *History) Record(ctx context.Context) context.Context {
	return context.WithValue(ctx, historyKey{}, h)
}

// Calls are the calls recorded so far, in the order in which they ended.
func (h *History) Calls() []promise.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]promise.Call(nil), h.calls...)
}

// note records calls if the context has a History.
func note(ctx context.Context, began time.Time, calls ...promise.Call) {
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
	calls := make([]promise.Call, len(raws))
	for i, raw := range raws {
		c := promise.Call{Kind: promise.Submit, Chain: id, Hash: chain.Keccak(raw), Result: answered(told)}
		c.Overload, c.Later = overload(told)
		if c.Result == promise.OK {
			switch {
			case i >= len(results):
				c.Result = promise.Unknown
			case !results[i].OK:
				c.Result = promise.Refused
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
	c := promise.Call{Kind: promise.Read, Chain: cmp.Or(id, TempoChain), Hash: hash, Result: answered(told), Status: tx.Status(t.Status)}
	if told != nil && told.code == http.StatusNotFound {
		c.Result, c.Missing = promise.OK, true
	}
	c.Overload, c.Later = overload(told)
	note(ctx, began, c)
}

// answered classifies a reply; nil is no reply.
func answered(told *reply) promise.Result {
	switch {
	case told == nil:
		return promise.Unknown
	case told.code == http.StatusOK:
		return promise.OK
	}
	return promise.Refused
}

func overload(told *reply) (overload, later bool) {
	if told == nil || told.code != http.StatusTooManyRequests && told.code != http.StatusServiceUnavailable {
		return false, false
	}
	return true, told.header.Get("Retry-After") != ""
}
