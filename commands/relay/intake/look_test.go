package intake_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// counted counts the appends that reach the store.
type counted struct {
	port.Store
	appends atomic.Int64
}

func (c *counted) Append(ctx context.Context, stream eventlog.Stream, at eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	c.appends.Add(1)
	return c.Store.Append(ctx, stream, at, events...)
}

// A repeated large request gets its intent without an append, and a different one is refused likewise.
func TestLargeRepetitionsAppendNothing(t *testing.T) {
	d := newDesk(t)
	store := &counted{Store: d.Intents.Store}
	d.Intents.Store = store
	large := func(b byte) intent.Request {
		return asked(func(r *intent.Request) { r.Calls[0].Data = make([]byte, 40<<10); r.Calls[0].Data[0] = b })
	}
	create := func(b byte) (known bool, err error) {
		a := d.Create(t.Context(), []intent.Request{large(b)}, eventlog.Meta{})[0]
		return a.Known, a.Err
	}
	if known, err := create(1); known || err != nil {
		t.Fatalf("known %v, %v", known, err)
	}
	if known, err := create(1); !known || err != nil {
		t.Errorf("repeated: known %v, %v", known, err)
	}
	if _, err := create(2); !errors.Is(err, intent.ErrDiffers) {
		t.Errorf("a different request: %v", err)
	}
	if n := store.appends.Load(); n != 1 {
		t.Errorf("%d appends of one intent", n)
	}
}
