package delivery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// unread is a log that cannot be read while off is true.
type unread struct {
	port.Store
	off atomic.Bool
}

var errUnread = errors.New("the disk says no")

func (u *unread) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	if u.off.Load() {
		return func(yield func(eventlog.Batch, error) bool) { yield(eventlog.Batch{}, errUnread) }
	}
	return u.Store.ReadAll(ctx, after, f, most)
}

// If the log cannot be read, the answer is a problem and not a broken stream. If a part can be
// read, the client gets that part first.
func TestFollowUnreadable(t *testing.T) {
	log := &unread{}
	s := newStack(t, func(c *Config) {
		log.Store = c.Submit.Transactions.Store
		c.Submit.Transactions.Store = log
		c.Tail = tail.New(log, tx.Codec(), slog.New(slog.DiscardHandler)) // nothing follows it, so it reads the store
	})
	key := newKey(t)
	one := s.submit(signed(t, key, testChain, 0))[0]
	unheard := s.append(tx.Stream(testChain, chain.Hash{9}), "tx.unheard.v1") // its sender is unknown

	log.off.Store(true)
	failed := s.get("/v1/events?after=0")
	if kind := failed.header.Get("Content-Type"); failed.status != http.StatusInternalServerError || kind != "application/problem+json" || failed.header.Get("X-Accel-Buffering") != "" {
		t.Errorf("answered %d, %v: %s", failed.status, failed.header, failed.body)
	}

	log.off.Store(false)
	c := s.tune("after=0&sender=" + one.Sender)
	if got := c.wantNext("tx.accepted.v1"); got[0]["txHash"] != one.TxHash.String() {
		t.Errorf("%v", got)
	}
	if _, err := c.next(); err == nil {
		t.Error("the stream goes on behind an event that could not be judged")
	}
	if failed := s.get(fmt.Sprintf("/v1/events?after=%d&sender=%s", unheard-1, one.Sender)); failed.status != http.StatusInternalServerError {
		t.Errorf("answered %d: %s", failed.status, failed.body)
	}
}
