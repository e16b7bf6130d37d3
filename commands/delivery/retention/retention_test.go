package retention

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	moderato = chain.ID(42431)
	day      = 24 * time.Hour
)

// archive is a store with all parts of retention running on it, on the clock of a synctest
// bubble. It ends with the bubble.
type archive struct {
	t     *testing.T
	db    *embedded.DB
	vault commands.Vault
	*Retention
}

// inBubble runs a test with an archive, with the parts of retention running.
func inBubble(t *testing.T, s Settings, test func(t *testing.T, a archive)) {
	inBubbleBy(t, time.Now, s, test)
}

// inBubbleBy is inBubble for a process whose clock differs from the store's.
func inBubbleBy(t *testing.T, now func() time.Time, s Settings, test func(t *testing.T, a archive)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		master, err := payload.NewMaster(bytes.Repeat([]byte{5}, payload.KeyBytes))
		check(t, err)
		s.Sweep = cmp.Or(s.Sweep, 7*day)
		a := archive{t, db, commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader}, &Retention{
			Store: db.Log(), Checkpoints: db.Work(), Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
			Payloads: db.Payloads(), Settings: s, Now: now, Log: slog.New(slog.DiscardHandler),
		}}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, part := range a.Parts() {
			running.Go(func() {
				if err := part.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%s ended: %v", part.Name, err)
				}
			})
		}
		defer func() {
			stop()
			running.Wait()
			check(t, db.Close())
		}()
		test(t, a)
	})
}

// live makes the n-th transaction: accepted, its bytes stored, then changed by the
// commands.
func (a archive) live(n byte, life ...tx.Command) chain.Hash {
	a.t.Helper()
	hash := chain.Hash{n}
	check(a.t, a.vault.Keep(context.Background(), []commands.Payload{{Ref: payload.Ref{Chain: moderato, Hash: hash}, Raw: []byte("signed")}}))
	accept := tx.Accept{Accepted: tx.Accepted{Chain: moderato, Hash: hash, Sender: chain.Address{n}, At: time.Now()}}
	for _, c := range append([]tx.Command{accept}, life...) {
		a.handle(hash, c)
	}
	return hash
}

func (a archive) handle(hash chain.Hash, c tx.Command) {
	a.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(a.t, err)
	_, err = a.Transactions.Handle(context.Background(), tx.Stream(moderato, hash), c, o)
	check(a.t, err)
}

// want checks a transaction after a time, when all due work is done.
func (a archive) want(after time.Duration, hash chain.Hash, kept, erased, retired bool) {
	a.t.Helper()
	<-time.After(after)
	synctest.Wait()
	r, err := a.Transactions.Load(context.Background(), tx.Stream(moderato, hash))
	check(a.t, err)
	_, err = a.vault.Bytes(context.Background(), payload.Ref{Chain: moderato, Hash: hash})
	if err != nil && !errors.Is(err, payload.ErrGone) {
		a.t.Fatal(err)
	}
	if got := err == nil; got != kept || r.State.Erased != erased || r.State.Retired != retired {
		a.t.Errorf("%x: kept %v, erased %v, retired %v; want %v, %v, %v", hash[:1], got, r.State.Erased, r.State.Retired, kept, erased, retired)
	}
}

var (
	block     = chain.Block{Number: 7, Hash: chain.Hash{7}}
	executed  = tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}}
	stale     = tx.SeeNonce{Block: block, Current: 1}
	finalized = tx.Finalize{Final: block}
	canceled  = tx.Cancel{Reason: "owner"}
)

func refused(permanently bool) tx.Report {
	return tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}, Everyone: permanently}
}

// With a clock far behind the store's nothing is kept for longer.
func TestAClockThatIsBehind(t *testing.T) {
	behind := func() time.Time { return time.Now().Add(-100 * day) }
	inBubbleBy(t, behind, Settings{Bytes: day, Rows: 30 * day}, func(t *testing.T, a archive) {
		wish := canceled
		a.want(time.Second, a.live(1, wish), false, true, false)
		hash := a.live(2, executed, finalized)
		a.want(day-time.Second, hash, true, false, false)
		a.want(2*time.Second, hash, false, true, false)
	})
}

// A settled transaction keeps its bytes for one period and its rows for another.
func TestBytesThenRows(t *testing.T) {
	inBubble(t, Settings{Bytes: day, Rows: 30 * day}, func(t *testing.T, a archive) {
		hash := a.live(1, executed, finalized)
		a.want(day-time.Second, hash, true, false, false)
		a.want(2*time.Second, hash, false, true, false)
		a.want(30*day-2*time.Second, hash, false, true, false)
		a.want(2*time.Second, hash, false, true, true)
	})
}

// A verdict that is not final does not count: the bytes may have to be sent again.
func TestOpenTransactionsAreKept(t *testing.T) {
	inBubble(t, Settings{Bytes: day, Rows: day}, func(t *testing.T, a archive) {
		open, announced, retried := a.live(1), a.live(2, executed), a.live(3, refused(false))
		for _, hash := range []chain.Hash{open, announced, retried} {
			a.want(100*day, hash, true, false, false)
		}
	})
}

// Canceled transactions, and transactions that can never be sent, are erased at once.
func TestUnwantedBytesGoAtOnce(t *testing.T) {
	inBubble(t, Settings{Bytes: day}, func(t *testing.T, a archive) {
		a.want(0, a.live(1, canceled), false, true, false)
		a.want(0, a.live(2, refused(true)), false, true, false)
		// …also if the chain's verdict came in between.
		a.want(0, a.live(3, canceled, executed, finalized), false, true, false)
	})
}

// A canceled transaction is watched until its verdict is final; only then may it be
// forgotten.
func TestCanceledIsRetiredOnceTheChainHasSpoken(t *testing.T) {
	inBubble(t, Settings{Bytes: day, Rows: 30 * day}, func(t *testing.T, a archive) {
		hash := a.live(1, canceled)
		a.want(100*day, hash, false, true, false)
		a.handle(hash, stale)
		a.want(100*day, hash, false, true, false)
		a.handle(hash, finalized)
		a.want(30*day-time.Second, hash, false, true, false)
		a.want(2*time.Second, hash, false, true, true)
	})
}

// Without a period rows stay for ever.
func TestRowsAreKeptForEver(t *testing.T) {
	inBubble(t, Settings{}, func(t *testing.T, a archive) {
		a.want(1000*day, a.live(1, executed, finalized), false, true, false)
	})
}

// A transaction whose final verdict the chain contradicts is left to an operator.
func TestViolatedIsLeftAlone(t *testing.T) {
	inBubble(t, Settings{Bytes: day, Rows: day}, func(t *testing.T, a archive) {
		hash := a.live(1, executed, finalized, tx.LoseBlock{Was: block, Now: chain.Block{Number: 7, Hash: chain.Hash{8}}})
		a.want(100*day, hash, true, false, false)
	})
}

// stubborn is a payload store that fails to erase for a while.
type stubborn struct {
	commands.PayloadRows
	until time.Time
}

var errStubborn = errors.New("not now")

func (s stubborn) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	if time.Now().Before(s.until) {
		return errStubborn
	}
	return s.PayloadRows.Erase(ctx, id, hashes)
}

// An erasure is recorded only after it was done: a failed part resumes where it was.
func TestErasedIsNotSaidBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		a := archive{t, db, commands.Vault{Rows: db.Payloads(), Random: rand.Reader}, &Retention{
			Store: db.Log(), Checkpoints: db.Work(), Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
			Payloads: stubborn{db.Payloads(), time.Now().Add(time.Minute)}, Now: time.Now,
		}}
		master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
		check(t, err)
		a.vault.Master = master
		hash := a.live(1, canceled)
		part := a.Parts()[0]
		if err := part.Run(t.Context()); !errors.Is(err, errStubborn) {
			t.Fatal(err)
		}
		a.want(2*time.Minute, hash, true, false, false)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- part.Run(ctx) }()
		a.want(0, hash, false, true, false)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A transaction that a node refused once and the chain has executed since keeps its bytes
// for the period, even if the refusal is read late, for example after checkpoints were
// lost.
func TestRefusalReadLate(t *testing.T) {
	inBubble(t, Settings{Bytes: day}, func(t *testing.T, a archive) {
		hash := a.live(1, refused(false), executed, finalized)
		part, ended := a.part("retention.again", 0, a.eraseUnwanted, "tx.rejected."), make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- part.Run(ctx) }()
		a.want(day-time.Second, hash, true, false, false)
		a.want(2*time.Second, hash, false, true, false)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A retired transaction leaves the queue, and a queue rebuilt from the log does not have
// it.
func TestRetiredStaysAway(t *testing.T) {
	inBubble(t, Settings{Bytes: day, Rows: day}, func(t *testing.T, a archive) {
		gone, stays := a.live(1, executed, finalized), a.live(2)
		a.want(3*day, gone, false, true, true)
		feed(t, a.db)
		rows, err := a.db.Work().Find(context.Background(), moderato, []chain.Hash{gone, stays})
		check(t, err)
		if len(rows) != 1 || rows[0].Hash != stays {
			t.Errorf("the queue has %+v", rows)
		}
		if names := eventsOf(t, a, gone); !slices.Equal(names, []string{
			"tx.accepted.v1", "tx.mined.v1", "tx.finalized.v1", "tx.payload_erased.v1", "tx.retired.v1",
		}) {
			t.Errorf("its events are %v", names)
		}
	})
}

// feed folds the whole log into the due queue.
func feed(t *testing.T, db *embedded.DB) {
	t.Helper()
	head, err := db.Log().Head(context.Background())
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err = (&scheduler.Feeder{
		Store: db.Log(), Queue: db.Work(), Checkpoints: db.Work(), Codec: tx.Codec(), Schedule: tx.DefaultSchedule(),
		Fed: func(at eventlog.Position) {
			if at >= head {
				stop()
			}
		},
		Log: slog.New(slog.DiscardHandler),
	}).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func eventsOf(t *testing.T, a archive, hash chain.Hash) (names []string) {
	t.Helper()
	for e, err := range a.Store.ReadStream(context.Background(), tx.Stream(moderato, hash), 0) {
		check(t, err)
		names = append(names, e.Name)
	}
	return names
}
