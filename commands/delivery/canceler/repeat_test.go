package canceler_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// loads counts the streams that are read.
type loads struct {
	port.Store
	n atomic.Int64
}

func (l *loads) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	l.n.Add(1)
	return l.Store.ReadStream(ctx, s, after)
}

// Attack 12: a repeated cancel loads every member again. It is charged for its members
// before any is visited, and answers from their rows.
func TestRepeatedCancelLoadsNoMember(t *testing.T) {
	const members = 40
	p := newPlace(t)
	for n := range uint64(members) {
		p.accept(n)
	}
	counted := &loads{Store: p.Transactions.Store}
	p.Canceler.Transactions.Store = counted
	rows := map[chain.Hash]tx.State{}
	p.Rows = func(_ context.Context, _ chain.ID, hashes []chain.Hash) (map[chain.Hash]tx.State, error) {
		return maps.Clone(rows), nil
	}
	var charged [2]int
	r := p.byID()
	r.Charge = func(carried, read int) error { charged = [2]int{carried, read}; return nil }
	first := p.cancel(r)
	if len(first.Members) != members || charged != [2]int{members, 0} {
		t.Fatalf("%d members, charged %v", len(first.Members), charged)
	}
	for _, m := range first.Members {
		rows[m.Hash] = p.state(m.Hash)
	}
	before := counted.n.Load()
	again := p.cancel(r)
	if diff := cmp.Diff(p.outcomes(first), p.outcomes(again)); diff != "" {
		t.Errorf("again (-first +again):\n%s", diff)
	}
	if n := counted.n.Load() - before; n > 0 || charged != [2]int{0, members} {
		t.Errorf("%d streams were loaded, charged %v", n, charged)
	}
	// A row that is behind is not trusted.
	rows[first.Members[7].Hash] = tx.State{}
	if again = p.cancel(r); !again.Members[7].Canceled || counted.n.Load()-before != 1 {
		t.Errorf("a member whose row is behind is %+v, %d loaded", again.Members[7].Status, counted.n.Load()-before)
	}
	// A client that cannot pay visits no member.
	before = counted.n.Load()
	poor := p.typed()
	poor.Charge = func(int, int) error { return errors.New("rate limited") }
	if _, err := p.Cancel(t.Context(), poor, eventlog.Meta{}); err == nil || counted.n.Load() > before {
		t.Errorf("a client that cannot pay: %v, %d loaded", err, counted.n.Load()-before)
	}
}

// A cancel is admitted by the size of its group before an event of it is read, and gives its
// place back before it visits members.
func TestCancelIsAdmittedBeforeItReads(t *testing.T) {
	const members = 40
	p := newPlace(t)
	for n := range uint64(members) {
		p.accept(n)
	}
	p.grouped()
	counted := &loads{Store: p.Transactions.Store}
	p.Canceler.Store, p.Canceler.Groups.Store, p.Canceler.Transactions.Store = counted, counted, counted
	p.grouper.Store, p.grouper.Groups.Store, p.grouper.Transactions.Store = counted, counted, counted
	refused := errors.New("rate limited")
	r := p.byID()
	r.Admit = func(_ context.Context, events int) (func(), error) {
		if n := counted.n.Load(); events != members || n > 0 {
			t.Errorf("admitted to %d events, after %d streams were read", events, n)
		}
		return nil, refused
	}
	if _, err := p.Cancel(t.Context(), r, eventlog.Meta{}); !errors.Is(err, refused) || counted.n.Load() > 0 {
		t.Errorf("answered %v, after %d streams were read", err, counted.n.Load())
	}
	left := false
	r.Admit = func(context.Context, int) (func(), error) { return func() { left = true }, nil }
	p.Rows = func(context.Context, chain.ID, []chain.Hash) (map[chain.Hash]tx.State, error) {
		if !left {
			t.Error("members are visited before the place is given back")
		}
		return nil, nil
	}
	if n := len(p.cancel(r).Members); n != members || !left {
		t.Errorf("%d members, place given back: %v", n, left)
	}
}
