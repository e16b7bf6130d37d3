package owners_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engines runs a test on every engine for read models, with a database that has their tables.
func engines(t *testing.T, test func(t *testing.T, db *sql.DB)) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		test(t, db.View())
	})
	t.Run("postgres", func(t *testing.T) {
		db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		test(t, db.View())
	})
}

// history is a log with transactions of some clients.
type history struct {
	log          *embedded.Log
	transactions commands.Transactions
	groups       commands.Groups
}

func newHistory(t *testing.T) *history {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return &history{db.Log(), commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}, commands.Groups{Store: db.Log(), Codec: group.Codec(), Random: rand.Reader}}
}

var epoch = time.Unix(1_800_000_000, 0).UTC()

// clients submit in turn. The first has no key; the last one's key has no client name.
var clients = []string{"", "ann", "bob", access.KeyID{7}.String()}

const old = 3 // index of the last client

func hashOf(n int) chain.Hash         { return chain.Keccak(fmt.Append(nil, "transaction ", n)) }
func senderOf(n int) chain.Address    { return chain.Address{1, byte(n / 4 % 3)} }
func groupOf(n int) (g chain.GroupID) { return chain.NonceKey{31: byte(1 + n%2)}.Group() }
func clientOf(n int) int              { return n % len(clients) }

// accepted is the n-th transaction. An access key signed every fifth.
func accepted(n int) tx.Accepted {
	g := groupOf(n)
	a := tx.Accepted{
		Chain: 1, Hash: hashOf(n), Sender: senderOf(n), Signature: chain.Secp256k1, NonceKey: chain.NonceKey{31: byte(1 + n%2)},
		Nonce: uint64(n), Group: &g, EligibleAt: uint64(epoch.Unix()) + uint64(n), At: epoch,
	}
	if clientOf(n) != old {
		a.Client = clients[clientOf(n)]
	}
	if n%5 == 0 {
		a.Signature, a.AccessKey = chain.Keychain, &chain.Address{9}
	}
	return a
}

func (h *history) command(t *testing.T, n int, actor string, c tx.Command) {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: actor})
	check(t, err)
	_, err = h.transactions.Handle(t.Context(), tx.Stream(1, hashOf(n)), c, o)
	check(t, err)
}

// live records one of several lives for the n-th transaction.
func (h *history) live(t *testing.T, n int) {
	t.Helper()
	actor := "api"
	if clientOf(n) == old {
		actor = access.Actor(access.KeyID{7})
	}
	h.command(t, n, actor, tx.Accept{Accepted: accepted(n)})
	if n%3 == 0 { // the next client submits it too
		again := accepted(n)
		again.Client = clients[1+(n+1)%2]
		h.command(t, n, "api", tx.Accept{Accepted: again})
	}
	block := chain.Block{Number: 3, Hash: chain.Hash{3}}
	if n%10 == 0 {
		h.command(t, n, "grouping", tx.ConfirmGroup{Block: block, At: epoch})
	}
	if n%5 != 0 || n%10 == 0 {
		h.join(t, n)
	}
	if n%7 == 6 {
		h.command(t, n, "watcher", tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: epoch})
		h.command(t, n, "watcher", tx.Finalize{Final: block, At: epoch})
		h.command(t, n, "retention", tx.Erase{At: epoch})
		h.command(t, n, "retention", tx.Retire{At: epoch})
	}
}

func (h *history) join(t *testing.T, n int) {
	t.Helper()
	a := accepted(n)
	j := group.Joined{Chain: 1, Sender: a.Sender, Group: *a.Group, Hash: a.Hash, NonceKey: a.NonceKey, Nonce: a.Nonce, EligibleAt: a.EligibleAt, At: epoch}
	if a.AccessKey != nil {
		j.AccessKey, j.Confirmed = a.AccessKey, &chain.Block{Number: 3, Hash: chain.Hash{3}}
	}
	o, err := handler.Begin(rand.Reader, eventlog.Meta{})
	check(t, err)
	_, err = h.groups.Handle(t.Context(), group.ID{Chain: 1, Sender: a.Sender, Group: *a.Group}.Stream(), group.Join{Members: []group.Joined{j}}, o)
	check(t, err)
}

// project runs the projectors up to the head.
func (h *history) project(t *testing.T, db *sql.DB) {
	t.Helper()
	head, err := h.log.Head(t.Context())
	check(t, err)
	for _, p := range []*projector.Projector{
		{Name: owners.Name, Filter: owners.Filter(), Fold: owners.Projection{Codec: tx.Codec()}.Fold},
		{Name: transactions.Name, Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold},
		{Name: groups.Name, Filter: groups.Filter(), Fold: groups.Projection{Groups: group.Codec(), Transactions: tx.Codec()}.Fold},
	} {
		ctx, stop := context.WithCancel(t.Context())
		p.DB, p.Log = db, h.log
		p.Moved = func(at eventlog.Position, _ bool) {
			if at >= head {
				stop()
			}
		}
		if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stop()
	}
}

// dump is the tables as text.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	for _, table := range owners.Model(tx.Codec()).Tables {
		var failed error
		for _, row := range table.Rows(t.Context(), db, "", &failed) {
			b.Write(append(row, '\n'))
		}
		check(t, failed)
	}
	return b.String()
}
