package canceler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// until runs a process manager until its checkpoint has reached the log's head.
func (p *place) until(reader string, run func(ctx context.Context) error, set func(port.Checkpoints)) {
	p.Helper()
	head, err := p.db.Log().Head(context.Background())
	check(p.T, err)
	ctx, stop := context.WithCancel(p.Context())
	defer stop()
	set(watched{p.db.Work(), head, stop})
	defer set(p.db.Work())
	if at, err := p.db.Work().Checkpoint(ctx, reader); err != nil || at >= head {
		check(p.T, err)
		return
	}
	if err := run(ctx); !errors.Is(err, context.Canceled) {
		p.Fatal(err)
	}
}

// watched is checkpoints that stop a reader at the head.
type watched struct {
	port.Checkpoints
	head eventlog.Position
	stop context.CancelFunc
}

func (w watched) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	err := w.Checkpoints.MoveCheckpoint(ctx, reader, from, to)
	if err == nil && to >= w.head {
		w.stop()
	}
	return err
}

// grouped runs the grouper, so that accepted transactions join.
func (p *place) grouped() {
	p.Helper()
	p.until(grouping.Reader, p.grouper.Run, func(c port.Checkpoints) { p.grouper.Checkpoints = c })
}

// followed runs the process manager until it has no more to do.
func (p *place) followed() {
	p.Helper()
	p.until(canceler.Reader, p.Canceler.Run, func(c port.Checkpoints) { p.Checkpoints = c })
}

// A cancel covers all transactions acknowledged before it, whether or not they had joined,
// while other clients submit and the grouper runs.
func TestCancelFindsAllThatWasAccepted(t *testing.T) {
	p := newPlace(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.grouper.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for round := range uint64(20) {
		var before []chain.Hash
		for i := range uint64(5) {
			before = append(before, p.accept(round*10+i))
		}
		running.Go(func() { p.accept(round*10 + 9) }) // meanwhile: either answer is right
		p.cancel(p.typed(func(w *group.Wish) { w.Expires += round }))
		for i, hash := range before {
			if s := p.state(hash); s.Status != tx.StatusCanceled || !s.Erased || p.kept(hash) {
				t.Errorf("round %d, transaction %d: %s, erased %v", round, i, s.Status, s.Erased)
			}
		}
	}
	stop()
	running.Wait()
}

// unwilling is a payload store that erases nothing.
type unwilling struct{ commands.PayloadRows }

var errUnwilling = errors.New("not now")

func (unwilling) Erase(context.Context, chain.ID, []chain.Hash) error { return errUnwilling }

// A recorded cancel is finished even if its request failed.
func TestCarriedOutAfterTrouble(t *testing.T) {
	p := newPlace(t)
	hashes := []chain.Hash{p.accept(0), p.accept(1), p.accept(2)}
	p.Payloads = unwilling{p.db.Payloads()}
	_, err := p.Cancel(t.Context(), p.byID(), eventlog.Meta{})
	if !errors.Is(err, canceler.ErrUnfinished) || !errors.Is(err, errUnwilling) || !p.kept(hashes[0]) {
		t.Fatalf("answered %v", err)
	}
	p.Payloads = p.db.Payloads()
	p.followed()
	for _, hash := range hashes {
		if s := p.state(hash); s.Status != tx.StatusCanceled || !s.Erased || p.kept(hash) {
			t.Errorf("%s, erased %v, kept %v", s.Status, s.Erased, p.kept(hash))
		}
	}
}

// A clock far behind the store's does not delay it.
func TestCarriedOutByAClockThatIsBehind(t *testing.T) {
	p := newPlace(t)
	hash := p.accept(0)
	p.Payloads = unwilling{p.db.Payloads()}
	if _, err := p.Cancel(t.Context(), p.byID(), eventlog.Meta{}); !errors.Is(err, canceler.ErrUnfinished) {
		t.Fatalf("answered %v", err)
	}
	p.Payloads = p.db.Payloads()
	p.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	head, err := p.db.Log().Head(t.Context())
	check(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	p.Checkpoints = watched{p.db.Work(), head, stop}
	if err := p.Canceler.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if p.kept(hash) {
		t.Error("its bytes are kept")
	}
}

// The process ends after recording the group's cancel: no member was canceled.
func TestCarriedOutAfterTheRecord(t *testing.T) {
	p := newPlace(t)
	hash := p.accept(0)
	p.grouped()
	by := group.Authority{Form: group.FormGroupID, Signature: chain.Secp256k1, Digest: group.Digest(key.Group())}
	id := group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()}
	_, err := p.Groups.Do(t.Context(), id.Stream(), group.Cancel{By: by, At: now}, eventlog.Meta{Actor: "api"})
	check(t, err)
	later := p.accept(1)
	p.grouped()
	p.followed()
	if s := p.state(hash); s.Status != tx.StatusCanceled || p.kept(hash) {
		t.Errorf("%s, kept %v", s.Status, p.kept(hash))
	}
	if s := p.state(later); s.Canceled {
		t.Error("what came after the cancel is canceled too")
	}
	before := len(p.events())
	p.cancel(p.typed()) // finds the later one
	p.followed()
	if n := len(p.events()) - before; n != 3 {
		t.Errorf("%d events more, want the group's and two of the later one", n)
	}
}

// A transaction signed by an access key joins when the chain has confirmed the key. If it
// was accepted before the cancel, it is canceled when it joins; otherwise it is not.
func TestCancelOfWhatIsConfirmedLater(t *testing.T) {
	p := newPlace(t)
	byAccessKey := func(s *chain.Signed) { s.Signature, s.AccessKey = chain.Keychain, &chain.Address{9} }
	p.accept(0)
	early := p.accept(1, byAccessKey)
	if n := len(p.cancel(p.byID()).Members); n != 1 {
		t.Errorf("%d members are found: whoever claims to be the sender is none", n)
	}
	late := p.accept(2, byAccessKey)
	p.followed()
	for _, hash := range []chain.Hash{early, late} {
		p.handle(hash, tx.ConfirmGroup{Block: block})
	}
	p.grouped()
	p.followed()
	if s := p.state(early); s.Status != tx.StatusCanceled || p.kept(early) {
		t.Errorf("accepted before the cancel: %s", s.Status)
	}
	if s := p.state(late); s.Canceled || !p.kept(late) {
		t.Errorf("accepted after the cancel: %s", s.Status)
	}
}
