package delivery

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// payroll is the key of the format's own example: kind 2, scope PAYROLL, group 3906 and memo
// JAN-2026. n changes the group number.
func payroll(n byte) (key chain.NonceKey) {
	b, err := hex.DecodeString("4e4b4731" + "0102" + "0011" + "504159524f4c4c00" + "00000f42" + "4a414e2d3230323600000000")
	if err != nil {
		panic(err)
	}
	key = chain.NonceKey(b)
	key[19] += n
	return key
}

var owner = chain.Address{0xa1}

// payment is a transaction of owner with a nonce of a key, valid nonce days after the tests'
// time. It is unsigned, since these tests begin after the decoder.
func payment(key chain.NonceKey, nonce uint64, change ...func(*chain.Signed)) []byte {
	const day = 24 * 60 * 60
	t := chain.Signed{
		Chain: testChain, Type: 0x76, Sender: owner, Signature: chain.Secp256k1, NonceKey: key, Nonce: nonce, Gas: 50_000,
		Window: chain.Window{After: uint64(testTime.Unix()) + nonce*day},
	}
	for _, c := range change {
		c(&t)
	}
	return chaintest.EncodePlain(t)
}

func plain(c *Config) {
	for id := range c.Submit.Decoders {
		c.Submit.Decoders[id] = chaintest.DecodePlain
	}
}

// grouped is a stack whose groups are kept up to date until the test ends.
func grouped(t testing.TB, change ...func(*Config)) *stack {
	t.Helper()
	s := newStack(t, append([]func(*Config){plain}, change...)...)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	run := func(run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); ctx.Err() == nil { // after that a query may end with any error
				t.Error(err)
			}
		})
	}
	handled := commands.Groups{Store: s.db.Log(), Codec: group.Codec(), Random: rand.Reader}
	run((&grouping.Grouper{
		Store: s.db.Log(), Checkpoints: s.db.Work(), Transactions: s.config.Submit.Transactions, Groups: handled,
		Now: s.now, Log: s.config.Log,
	}).Run)
	run((&scheduler.Feeder{
		Store: s.db.Log(), Queue: s.db.Work(), Checkpoints: s.db.Work(), Codec: tx.Codec(),
		Schedule: tx.DefaultSchedule(), Log: s.config.Log,
	}).Run)
	for _, p := range []projector.Projector{
		{Name: groups.Name, Filter: groups.Filter(), Fold: groups.Projection{Groups: handled.Codec, Transactions: tx.Codec()}.Fold},
		{Name: owners.Name, Filter: owners.Filter(), Fold: owners.Projection{Codec: tx.Codec()}.Fold},
		{Name: transactions.Name, Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold},
	} {
		p.DB, p.Log = s.db.View(), s.db.Log()
		run(p.Run)
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return s
}

// fed waits until the due queue has every recorded event.
func (s *stack) fed() {
	s.t.Helper()
	s.passed(scheduler.Reader)
}

// joined waits until the grouper has seen every recorded event. A query of a group waits for
// acceptances itself, but not for confirmations of claims.
func (s *stack) joined() {
	s.t.Helper()
	s.passed(grouping.Reader)
}

func (s *stack) passed(reader string) {
	s.t.Helper()
	checkpoint := func(ctx context.Context) (eventlog.Position, error) { return s.db.Work().Checkpoint(ctx, reader) }
	if err := (&api{Config: s.config}).reached(s.t.Context(), s.db.Log().Head, checkpoint); err != nil {
		s.t.Fatal(err)
	}
}

func groupsPath(sender chain.Address) string { return "/v1/senders/" + sender.String() + "/groups" }

func groupPath(key chain.NonceKey) string { return groupsPath(owner) + "/" + key.Group().String() }

func (s *stack) groupList(query string) (list []object) {
	s.t.Helper()
	res := s.get(groupsPath(owner) + query)
	if res.status != 200 {
		s.t.Fatalf("answered %s", res)
	}
	unmarshal(s.t, res.body, &list)
	return list
}

func (s *stack) groupShown(target string) (shown struct {
	Members []struct {
		TxHash          chain.Hash
		Nonce           uint64
		Status          tx.Status
		Canceled        bool
		Parked          bool
		WaitingForNonce *uint64
		WaitingSince    int64
	}
	NextCursor    string
	StartAt       uint64
	EndAt         uint64
	NextPaymentAt *uint64
	CancelPlan    struct {
		NonceKey           string
		Nonces             []uint64
		CurrentNonce       *uint64
		AlreadyInvalidated *bool
		Reason             string
	}
	Display map[string]string
}) {
	s.t.Helper()
	res := s.get(target)
	if res.status != 200 {
		s.t.Fatalf("answered %s", res)
	}
	unmarshal(s.t, res.body, &shown)
	return shown
}
