package scheduler_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = chain.ID(42431)

func open(t *testing.T) *embedded.DB {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func handling(db *embedded.DB) commands.Transactions {
	return commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}
}

func feeder(log port.Store, work *embedded.Work) *scheduler.Feeder {
	return &scheduler.Feeder{
		Store: log, Queue: work, Checkpoints: work, Codec: tx.Codec(),
		Schedule: tx.DefaultSchedule(), Log: slog.New(slog.DiscardHandler),
	}
}

// accepted returns the n-th of some transactions with one sender and nonce key, due at
// once.
func accepted(n uint64) tx.Accepted {
	return tx.Accepted{
		Chain: id, Hash: chain.Keccak(fmt.Append(nil, n)), Sender: chain.Address{1}, NonceKey: chain.NonceKey{31: 1},
		Nonce: n, EligibleAt: uint64(time.Now().Unix()), At: time.Now(),
	}
}

// command handles a command and reports whether it added an event. A refusal is ignored.
func command(t *testing.T, h commands.Transactions, hash chain.Hash, c tx.Command) bool {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(t, err)
	r, err := h.Handle(context.Background(), tx.Stream(id, hash), c, o)
	if err != nil && !commands.IsRefusal(err) {
		t.Fatal(err)
	}
	return err == nil && r.Added > 0
}
