package canceler_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// record records cancels of a group that no request carries out. first numbers their authorities.
func (p *place) record(id group.ID, first, cancels int) {
	p.Helper()
	r, err := p.Groups.Load(context.Background(), id.Stream())
	check(p.T, err)
	for n := range cancels {
		by := group.Authority{Form: group.FormTyped, Signature: chain.Secp256k1, Expires: uint64(now.Unix()) + 600}
		binary.BigEndian.PutUint64(by.Digest[:], uint64(first+n+1))
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "api"})
		check(p.T, err)
		r, err = p.Groups.HandleFrom(context.Background(), id.Stream(), r, group.Cancel{By: by, At: now}, o)
		check(p.T, err)
	}
}

// owned makes a transaction one of another sender's.
func owned(by chain.Address) func(*chain.Signed) {
	return func(s *chain.Signed) { s.Sender = by }
}

func accessKey(s *chain.Signed) { s.Signature, s.AccessKey = chain.Keychain, &chain.Address{9} }

// bob is a client's account besides the owner's.
var bob = chain.Address{0xb0}

// late records a group of bob's that is canceled, with a transaction that was accepted before the
// cancel and has not joined yet. join makes it join.
func (p *place) late() (hash chain.Hash, join func()) {
	p.Helper()
	p.accept(0, owned(bob))
	hash = p.accept(1, owned(bob), accessKey)
	p.grouped()
	p.record(group.ID{Chain: moderato, Sender: bob, Group: key.Group()}, 0, 1)
	return hash, func() {
		p.Helper()
		p.handle(hash, tx.ConfirmGroup{Block: block})
		p.grouped()
	}
}

// crowd records groups of the owner's with one member each.
func (p *place) crowd(groups int) (ids []group.ID, hashes []chain.Hash) {
	p.Helper()
	for n := range groups {
		key := explicit(byte(50 + n))
		hashes = append(hashes, p.accept(0, func(s *chain.Signed) { s.NonceKey = key }))
		ids = append(ids, group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()})
	}
	p.grouped()
	return ids, hashes
}

// One client's cancels that cover no new member are read and not carried out, so that another
// client's late member is canceled after a few calls of the store.
func TestIdleCancelsHoldUpNobody(t *testing.T) {
	const groups, cancels, most = 8, 250, 100
	p := newPlace(t)
	hash, join := p.late()
	ids, hashes := p.crowd(groups)
	for i, id := range ids {
		p.record(id, i*cancels, cancels)
	}
	join()
	counted := &loads{Store: p.Transactions.Store}
	p.Canceler.Store, p.Canceler.Groups.Store, p.Canceler.Transactions.Store = counted, counted, counted
	p.followed()
	if n := counted.n.Load(); n > most {
		t.Errorf("%d streams were read for %d cancels, want at most %d", n, groups*cancels, most)
	}
	for _, hash := range append(hashes, hash) {
		if s := p.state(hash); !s.Canceled || !s.Erased || p.kept(hash) {
			t.Errorf("%s: %s, erased %v", hash, s.Status, s.Erased)
		}
	}
}

// erasures are payloads that report when one of them was erased.
type erasures struct {
	commands.PayloadRows
	hash   chain.Hash
	erased chan struct{}
	once   *sync.Once
}

func (w erasures) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	err := w.PayloadRows.Erase(ctx, id, hashes)
	if err == nil && slices.Contains(hashes, w.hash) {
		w.once.Do(func() { close(w.erased) })
	}
	return err
}

// A late member is canceled while the cancels of more groups of another client than are handled
// at once take their time.
func TestLateJoinWaitsForNoGroup(t *testing.T) {
	p := newPlace(t)
	hash, join := p.late()
	p.followed()
	ids, slow := p.crowd(20)
	for i, id := range ids {
		p.record(id, i, 1)
	}
	join()
	done := erasures{p.db.Payloads(), hash, make(chan struct{}), new(sync.Once)}
	p.Payloads = done
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	p.Rows = func(_ context.Context, _ chain.ID, hashes []chain.Hash) (map[chain.Hash]tx.State, error) {
		if !slices.Contains(slow, hashes[0]) {
			return nil, nil
		}
		select {
		case <-done.erased:
			return nil, nil
		case <-ctx.Done():
			return nil, errors.New("the late member has to wait for other groups")
		}
	}
	p.followed()
	for _, hash := range append(slow, hash) {
		if s := p.state(hash); !s.Canceled || p.kept(hash) {
			t.Errorf("%s: %s", hash, s.Status)
		}
	}
}

// A member that was invalid at one cancel and is in a block at the next one, which may leave the
// chain, is canceled by the next one, although no member joined in between.
func TestIdleCancelOfAnInvalidMember(t *testing.T) {
	p := newPlace(t)
	hash := p.accept(0)
	p.grouped()
	p.handle(hash, tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}, Everyone: true})
	p.record(group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()}, 0, 2)
	visits := 0
	p.Crash = func(point string) {
		if point != "cancel.member" {
			return
		}
		if visits++; visits == 1 {
			if s := p.state(hash); s.Canceled || s.Status != tx.StatusInvalid {
				t.Errorf("after the first cancel it is %s", s.Status)
			}
			p.handle(hash, executed)
		}
	}
	p.followed()
	if s := p.state(hash); !s.Canceled || s.Status != tx.StatusExecuted || visits != 2 {
		t.Errorf("%s, canceled %v, visited %d times", s.Status, s.Canceled, visits)
	}
}
