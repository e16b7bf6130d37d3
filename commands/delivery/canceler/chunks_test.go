package canceler_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

const (
	chunk = 1_000 // members that a cancel visits at once
	large = 2_100 // members of a group of three chunks
)

// acceptMany submits the owner's first n transactions of the group, and makes them join. It
// returns the members in the order of joining.
func (p *place) acceptMany(n int) []group.Member {
	p.Helper()
	var raws [][]byte
	for i := range n {
		raws = append(raws, chaintest.EncodePlain(chain.Signed{
			Chain: moderato, Type: 0x76, Sender: p.sender(), Signature: chain.Secp256k1, NonceKey: key, Nonce: uint64(i), Gas: 50_000,
		}))
	}
	for some := range slices.Chunk(raws, 500) {
		answers, err := p.submit.Batch(context.Background(), moderato, some, commands.From("shop"), eventlog.Meta{})
		check(p.T, err)
		for _, a := range answers {
			check(p.T, a.Err)
		}
	}
	p.grouped()
	r, err := p.Groups.Load(context.Background(), p.group().Stream())
	check(p.T, err)
	return r.State.List()
}

// group is the owner's group.
func (p *place) group() group.ID {
	return group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()}
}

// counted returns how many events of each name are recorded.
func (p *place) counted() map[string]int {
	p.Helper()
	all := map[string]int{}
	for _, name := range p.events() {
		all[name]++
	}
	return all
}

const canceledName, erasedName = "tx.canceled_locally.v2", "tx.payload_erased.v1"

// visits are the chunks that a request visits, and the streams that are read in each.
type visits struct {
	port.Store
	*testing.T
	inside       atomic.Bool
	chunks, read atomic.Int64
}

func (v *visits) visit(context.Context) (func(), error) {
	if v.inside.Swap(true) {
		v.Error("two chunks are visited at once")
	}
	v.chunks.Add(1)
	v.read.Store(0)
	return func() { v.inside.Store(false) }, nil
}

func (v *visits) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if n := v.read.Add(1); n > chunk || !v.inside.Load() {
		v.Errorf("%d members are loaded in a chunk, a chunk is visited: %v", n, v.inside.Load())
	}
	return v.Store.ReadStream(ctx, s, after)
}

// watchedErasures call see with the number of payloads before each call of Erase.
type watchedErasures struct {
	commands.PayloadRows
	see func(n int) error
}

func (w watchedErasures) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	if err := w.see(len(hashes)); err != nil {
		return err
	}
	return w.PayloadRows.Erase(ctx, id, hashes)
}

// A large group is visited in chunks, each in a place of its own. All members are canceled before
// the bytes of the first one are erased, and the answer has all members.
func TestLargeGroupIsVisitedInChunks(t *testing.T) {
	p := newPlace(t)
	members := p.acceptMany(large)
	v := &visits{Store: p.Transactions.Store, T: t}
	p.Canceler.Transactions.Store = v
	p.Rows = func(_ context.Context, _ chain.ID, asked []chain.Hash) (map[chain.Hash]tx.State, error) {
		if len(asked) > chunk || !v.inside.Load() {
			t.Errorf("%d rows are asked for, a chunk is visited: %v", len(asked), v.inside.Load())
		}
		return nil, nil
	}
	p.Payloads = watchedErasures{p.db.Payloads(), func(n int) error {
		if all := p.counted()[canceledName]; all != large || n > chunk {
			t.Errorf("%d members are canceled when %d payloads are erased", all, n)
		}
		return nil
	}}
	r := p.byID()
	r.Visit = v.visit
	r.Hold = func(_ context.Context, members int) error {
		if n := p.counted()["group.canceled.v1"]; members != large || n != 1 {
			t.Errorf("a place for %d members is asked for after %d cancels were recorded", members, n)
		}
		return nil
	}
	r.Owned = func(s tx.State) bool { return s.OwnedBy("shop") }
	answer := p.cancel(r)
	if len(answer.Members) != large || v.chunks.Load() < 2*large/chunk || v.inside.Load() {
		t.Errorf("the answer has %d members, after %d chunks", len(answer.Members), v.chunks.Load())
	}
	for i, m := range answer.Members {
		want := canceler.Member{Hash: members[i].Hash, Nonce: members[i].Nonce, Status: tx.StatusCanceled, Canceled: true, Erased: true, Owned: true}
		if m != want {
			t.Fatalf("member %d is %+v, want %+v", i, m, want)
		}
	}
	if all := p.counted(); all[canceledName] != large || all[erasedName] != large {
		t.Errorf("recorded %v", all)
	}
}

// A cancel without a place is recorded and unfinished, and the process manager finishes it.
func TestCancelWithoutAPlace(t *testing.T) {
	p := newPlace(t)
	hash := p.accept(0)
	none := errors.New("no place")
	for name, change := range map[string]func(*canceler.Request){
		"of a large answer": func(r *canceler.Request) { r.Hold = func(context.Context, int) error { return none } },
		"of a chunk": func(r *canceler.Request) {
			r.Visit = func(context.Context) (func(), error) { return nil, none }
		},
	} {
		r := p.byID()
		change(&r)
		if _, err := p.Cancel(t.Context(), r, eventlog.Meta{}); !errors.Is(err, canceler.ErrUnfinished) || !errors.Is(err, none) || p.state(hash).Canceled {
			t.Errorf("without a place %s answered %v", name, err)
		}
	}
	p.followed()
	if s := p.state(hash); !s.Canceled || p.kept(hash) {
		t.Errorf("%s, kept %v", s.Status, p.kept(hash))
	}
}

// held counts the states that a test has handed out and that are still in memory.
type held struct{ atomic.Int64 }

// done returns a finished state, and counts it until it is collected.
func (h *held) done() tx.State {
	receipt := &chain.Receipt{Block: block, Status: 1}
	h.Add(1)
	runtime.AddCleanup(receipt, func(n *atomic.Int64) { n.Add(-1) }, &h.Int64)
	return tx.State{
		Accepted: tx.Accepted{Chain: moderato, Client: "shop"}, Status: tx.StatusExecuted, Verdict: tx.StatusExecuted, Sealed: true,
		Receipt: receipt, Resubmitters: []string{"other"},
	}
}

// wait waits until at most most states are in memory.
func (h *held) wait(ctx context.Context, most int) error {
	for h.Load() > int64(most) {
		runtime.GC()
		if err := pause.For(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// The states of one chunk are forgotten before the rows of the next one are read: for a request,
// and for the process manager.
func TestChunksAreForgotten(t *testing.T) {
	for name, ask := range map[string]func(p *place){
		"request": func(p *place) {
			if n := len(p.cancel(p.byID()).Members); n != large {
				p.Errorf("the answer has %d members", n)
			}
		},
		"process manager": func(p *place) {
			p.record(p.group(), 0, 1)
			p.followed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.acceptMany(large)
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			states, rows := new(held), 0
			p.Rows = func(_ context.Context, _ chain.ID, asked []chain.Hash) (map[chain.Hash]tx.State, error) {
				if err := states.wait(ctx, 0); err != nil {
					t.Errorf("%d states of earlier chunks are in memory", states.Load())
				}
				found := map[chain.Hash]tx.State{}
				for _, hash := range asked {
					found[hash] = states.done()
				}
				rows += len(asked)
				return found, nil
			}
			ask(p)
			if all := p.counted(); rows != large || all[canceledName] > 0 {
				t.Errorf("%d rows were read; recorded %v", rows, all)
			}
		})
	}
}

// A process manager that dies in the middle of a large group goes on: each member is canceled and
// erased once.
func TestLargeGroupAfterADeath(t *testing.T) {
	p := newPlace(t)
	p.acceptMany(large)
	p.record(p.group(), 0, 1)
	for _, point := range []string{"cancel.member", "cancel.erased"} {
		ctx, stop := context.WithCancel(t.Context())
		var passed atomic.Int64
		p.Crash = func(at string) {
			if at == point && passed.Add(1) == 2 {
				stop()
			}
		}
		if err := p.Canceler.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at the second %s: %v", point, err)
		}
		stop()
		if all := p.counted(); all[erasedName] == large {
			t.Errorf("nothing is left after the death at %s: %v", point, all)
		}
	}
	p.Crash = nil
	p.followed()
	if all := p.counted(); all[canceledName] != large || all[erasedName] != large {
		t.Errorf("recorded %v", all)
	}
}

// A group has one member that a later cancel may still change. The process manager remembers that
// the members before it are finished, and the next cancel begins with this member.
func TestFinishedPrefixIsRemembered(t *testing.T) {
	const invalid = 12
	p := newPlace(t)
	var hashes []chain.Hash
	for _, m := range p.acceptMany(20) {
		hashes = append(hashes, m.Hash)
	}
	p.handle(hashes[invalid], tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}, Everyone: true})
	p.record(p.group(), 0, 2)
	var asked [][]chain.Hash
	p.Rows = func(_ context.Context, _ chain.ID, some []chain.Hash) (map[chain.Hash]tx.State, error) {
		asked = append(asked, some)
		return nil, nil
	}
	p.followed()
	if len(asked) != 2 || !slices.Equal(asked[0], hashes) || !slices.Equal(asked[1], hashes[invalid:]) {
		t.Errorf("visited %v", asked)
	}
}
