package transactions_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engines runs a test on every engine for read models. view creates an empty database without
// tables.
func engines(t *testing.T, test func(t *testing.T, view func(t *testing.T) *sql.DB)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, func(t *testing.T) *sql.DB {
			db, err := embedded.Open("", embedded.Options{})
			check(t, err)
			t.Cleanup(func() { check(t, db.Close()) })
			return db.View()
		})
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, func(t *testing.T) *sql.DB {
			db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{})
			check(t, err)
			t.Cleanup(func() { check(t, db.Close(context.Background())) })
			check(t, db.Migrate(t.Context()))
			return db.View()
		})
	})
}

func migrate(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	check(t, projections.Migrate(t.Context(), db, migrations.View))
	return db
}

// history is a log with the lives of some transactions.
type history struct {
	log          *embedded.Log
	transactions commands.Transactions
}

func newHistory(t *testing.T) *history {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return &history{db.Log(), commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}}
}

var epoch = time.Unix(1_800_000_000, 0).UTC()

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "transaction ", n)) }

func blockAt(n uint64, fork string) chain.Block {
	return chain.Block{Number: n, Hash: chain.Keccak(fmt.Append(nil, fork, n)), Time: uint64(epoch.Unix()) + n}
}

// accepted is the n-th transaction: from one of three senders, on one of two chains, every
// second one in a group.
func accepted(n int) tx.Accept {
	a := tx.Accepted{
		Chain: chain.ID(1 + n%2), Hash: hashOf(n), Sender: chain.Address{0: byte(n % 3)}, Signature: chain.Secp256k1,
		Nonce: uint64(n), EligibleAt: uint64(epoch.Unix()), At: epoch,
	}
	if n%2 == 0 {
		a.Group = &chain.GroupID{15: byte(n % 4)}
	}
	if n%3 == 0 {
		a.Signature, a.AccessKey = chain.Keychain, &chain.Address{9}
	}
	return tx.Accept{Accepted: a}
}

func (h *history) command(t *testing.T, n int, c tx.Command) {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(t, err)
	_, err = h.transactions.Handle(t.Context(), tx.Stream(chain.ID(1+n%2), hashOf(n)), c, o)
	check(t, err)
}

// live records one of several lives for the n-th transaction.
func (h *history) live(t *testing.T, n int) {
	t.Helper()
	h.command(t, n, accepted(n))
	if n%4 == 0 { // confirms every second claim to a group
		h.command(t, n, tx.ConfirmGroup{Block: blockAt(3, "main"), At: epoch})
	}
	lives := [][]tx.Command{
		{},
		{report(1, tx.Taken)},
		{report(1, tx.Unknown), report(2, tx.Taken), mined(7, "main"), tx.Finalize{Final: blockAt(9, "main"), At: epoch}},
		{report(1, tx.Taken), mined(7, "main"), tx.LoseBlock{Was: blockAt(7, "main"), Now: blockAt(7, "fork"), At: epoch}, mined(8, "fork")},
		{report(1, tx.Retry), tx.SeeNonce{Block: blockAt(8, "main"), Current: uint64(n) + 1, At: epoch}},
		{tx.Cancel{Reason: "owner", At: epoch}, tx.Erase{At: epoch}},
		{report(1, tx.Permanent), tx.Erase{At: epoch}, tx.Retire{At: epoch}},
	}
	for _, c := range lives[n%len(lives)] {
		h.command(t, n, c)
	}
}

func report(attempt int, class tx.Class) tx.Report {
	return tx.Report{Attempt: attempt, Answers: []tx.Answer{{Endpoint: "a", Class: class, Message: "said so"}}, Everyone: true, At: epoch}
}

func mined(n uint64, fork string) tx.SeeReceipt {
	return tx.SeeReceipt{Receipt: chain.Receipt{Block: blockAt(n, fork), Status: 1, GasUsed: 21000}, At: epoch}
}

func (h *history) projector(db *sql.DB) *projector.Projector {
	return &projector.Projector{
		Name: transactions.Name, DB: db, Log: h.log,
		Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold,
	}
}

// project runs a projector until it has reached the head of the log.
func (h *history) project(t *testing.T, db *sql.DB) {
	t.Helper()
	head, err := h.log.Head(t.Context())
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := h.projector(db)
	p.Moved = func(at eventlog.Position, _ bool) {
		if at >= head {
			stop()
		}
	}
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// dump is the table as text, in a fixed order.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT chain, hash, position, version, sender, nonce_key, group_id, status, data FROM transactions ORDER BY chain, hash`)
	check(t, err)
	defer rows.Close() //nolint:errcheck // Err tells
	var all strings.Builder
	for rows.Next() {
		var id, position, version int64
		var status string
		var hash, sender, key, group, data []byte
		check(t, rows.Scan(&id, &hash, &position, &version, &sender, &key, &group, &status, &data))
		fmt.Fprintf(&all, "%d %x %d %d %x %x %x %s %s\n", id, hash, position, version, sender, key, group, status, data)
	}
	check(t, rows.Err())
	return all.String()
}

// Several replicas may create the tables at once.
func TestMigrateTogether(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := view(t)
		var making sync.WaitGroup
		for range 8 {
			making.Go(func() {
				if err := projections.Migrate(t.Context(), db, migrations.View); err != nil {
					t.Error(err)
				}
			})
		}
		making.Wait()
		if got := dump(t, db); got != "" {
			t.Errorf("a new table holds %q", got)
		}
	})
}
