package notary

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *embedded.Log {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db.Log()
}

func fill(t *testing.T, log port.Store, stream eventlog.Stream, from, n int) {
	t.Helper()
	for i := range n {
		e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{1}, from+i), Name: "test.v1", Data: fmt.Appendf(nil, `{"n":%d}`, i)}
		if _, err := log.Append(t.Context(), stream, eventlog.Version(from+i), e); err != nil {
			t.Fatal(err)
		}
	}
}

// notaryOf returns a notary that seals at most this many events at once, and a channel of
// its seals.
func notaryOf(log port.Store, events int) (*Notary, <-chan eventlog.Position) {
	signer, err := audit.NewSigner(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	sealed := make(chan eventlog.Position, 100)
	return &Notary{
		Seals: Seals{Store: log, Codec: audit.Codec(), Random: rand.Reader}, Signer: signer,
		Settings: Settings{Every: 5 * time.Millisecond, Events: events},
		Sealed:   func(through eventlog.Position) { sealed <- through },
		Now:      time.Now, Log: slog.New(slog.DiscardHandler),
	}, sealed
}

// run runs a notary until it has sealed up to a position, and stops it.
func run(t *testing.T, n *Notary, sealed <-chan eventlog.Position, through eventlog.Position) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	for {
		select {
		case at := <-sealed:
			if at < through {
				continue
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		case err := <-ended:
			t.Fatalf("the notary ended: %v", err)
		}
	}
}

// verify checks the whole log against its seals, and returns them.
func verify(t *testing.T, log port.Store) (seals []audit.Sealed) {
	t.Helper()
	for r, err := range log.ReadStream(t.Context(), audit.Stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := audit.Codec().Decode(r.Name, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		seals = append(seals, e.(audit.Sealed))
	}
	rest := seals
	c := audit.NewCheck(func() (s audit.Sealed, ok bool) {
		if ok = len(rest) > 0; ok {
			s, rest = rest[0], rest[1:]
		}
		return s, ok
	}, seals...)
	for batch, err := range log.ReadAll(t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Events {
			if found := c.Event(r); len(found) > 0 {
				t.Error(found)
			}
		}
	}
	if found := c.End(); len(found) > 0 {
		t.Error(found)
	}
	return seals
}

// A notary continues from its last seal after each restart, splits many events into several
// seals, and seals nothing when only its own seals are new.
func TestSeals(t *testing.T) {
	log := open(t)
	total := 0
	for life := range 6 {
		stream := eventlog.Stream(fmt.Sprint("s-", life))
		fill(t, log, stream, 0, 25*life+1)
		total += 25*life + 1
		head, err := log.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n, sealed := notaryOf(log, 40)
		run(t, n, sealed, head)
		for _, s := range verify(t, log) {
			if len(s.Marks) > 40*audit.MarkBytes {
				t.Errorf("a seal of %d events", len(s.Marks)/audit.MarkBytes)
			}
		}
	}
	seals := verify(t, log)
	if last := seals[len(seals)-1]; last.Count < uint64(total) {
		t.Errorf("%d events sealed, of %d", last.Count, total)
	}

	n, _ := notaryOf(log, 40)
	before, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond) // twenty looks
	defer stop()
	if err := n.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if after, _ := log.Head(t.Context()); after != before {
		t.Errorf("%d events were appended to an idle log", after-before)
	}
}

// Of two notaries one gets a conflict, and continues from the other's last seal.
func TestTwoNotaries(t *testing.T) {
	log := open(t)
	fill(t, log, "s", 0, 10)
	first, sealedFirst := notaryOf(log, 100)
	stale, err := first.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, first, sealedFirst, 10)
	second, _ := notaryOf(log, 100)
	draft := stale.State.After()
	err = second.read(t.Context(), &stale, &draft)
	if err == nil {
		err = second.seal(t.Context(), &stale, &draft)
	}
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("the second notary: %v", err)
	}
	fill(t, log, "s", 10, 3)
	again, sealed := notaryOf(log, 100)
	run(t, again, sealed, 14)
	if seals := verify(t, log); len(seals) != 2 {
		t.Errorf("%d seals", len(seals))
	}
}

func TestLastOf(t *testing.T) {
	log := open(t)
	if _, ok, err := lastOf(t.Context(), log, "s"); ok || err != nil {
		t.Errorf("something was found in no stream: %v", err)
	}
	for n := range 70 {
		fill(t, log, "s", n, 1)
		last, ok, err := lastOf(t.Context(), log, "s")
		if err != nil || !ok || last.Version != eventlog.Version(n+1) {
			t.Errorf("of %d events the last is said to be %d, %v", n+1, last.Version, err)
		}
	}
}
