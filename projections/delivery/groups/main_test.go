package groups_test

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
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engines runs a test on every engine for read models. view creates an empty database with
// their tables.
func engines(t *testing.T, test func(t *testing.T, view func(t *testing.T) *sql.DB)) {
	migrated := func(t *testing.T, db *sql.DB) *sql.DB {
		check(t, projections.Migrate(t.Context(), db, migrations.View))
		return db
	}
	t.Run("embedded", func(t *testing.T) {
		test(t, func(t *testing.T) *sql.DB {
			db, err := embedded.Open("", embedded.Options{})
			check(t, err)
			t.Cleanup(func() { check(t, db.Close()) })
			return migrated(t, db.View())
		})
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, func(t *testing.T) *sql.DB {
			db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{})
			check(t, err)
			t.Cleanup(func() { check(t, db.Close(context.Background())) })
			check(t, db.Migrate(t.Context()))
			return migrated(t, db.View())
		})
	})
}

// history is a log with groups.
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
	return &history{
		db.Log(), commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}, commands.Groups{Store: db.Log(), Codec: group.Codec(), Random: rand.Reader},
	}
}

const epoch = 1_800_000_000

var began = time.Unix(epoch, 0).UTC()

// Every seventh transaction belongs to one of these groups of one sender, on two chains.
var (
	sender = chain.Address{1}
	keys   = []chain.NonceKey{{31: 1}, {31: 2}, {31: 3}}
)

func groupOf(n int) group.ID {
	return group.ID{Chain: chain.ID(1 + n/3%2), Sender: sender, Group: keys[n%3].Group()}
}

// accepted is the n-th transaction, claimed by an access key if n is odd.
func accepted(n int) tx.Accepted {
	id := groupOf(n)
	a := tx.Accepted{
		Chain: id.Chain, Hash: chain.Keccak(fmt.Append(nil, "transaction ", n)), Sender: sender, Signature: chain.Secp256k1,
		NonceKey: keys[n%3], Nonce: uint64(n / 6), Group: &id.Group, EligibleAt: epoch + uint64(100-n), At: began,
	}
	if n%2 == 1 {
		a.Signature, a.AccessKey = chain.Keychain, &chain.Address{9, byte(n)}
	}
	return a
}

func block(n uint64) chain.Block {
	return chain.Block{Number: n, Hash: chain.Keccak(fmt.Append(nil, n)), Time: epoch + n}
}

func origin(t *testing.T) handler.Origin {
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(t, err)
	return o
}

func (h *history) command(t *testing.T, n int, all ...tx.Command) {
	t.Helper()
	for _, c := range all {
		a := accepted(n)
		_, err := h.transactions.Handle(t.Context(), tx.Stream(a.Chain, a.Hash), c, origin(t))
		check(t, err)
	}
}

func (h *history) join(t *testing.T, n int) {
	t.Helper()
	a := accepted(n)
	j := group.Joined{
		Chain: a.Chain, Sender: a.Sender, Group: *a.Group, Hash: a.Hash, NonceKey: a.NonceKey,
		Nonce: a.Nonce, EligibleAt: a.EligibleAt, At: began,
	}
	if a.AccessKey != nil {
		b := block(2)
		j.AccessKey, j.Confirmed = a.AccessKey, &b
	}
	_, err := h.groups.Handle(t.Context(), groupOf(n).Stream(), group.Join{Members: []group.Joined{j}}, origin(t))
	check(t, err)
}

var (
	mined   = tx.SeeReceipt{Receipt: chain.Receipt{Block: block(7), Status: 1}, At: began}
	final   = tx.Finalize{Final: block(9), At: began}
	confirm = tx.ConfirmGroup{Block: block(2), At: began}
)

// live records one of several lives for the n-th transaction.
func (h *history) live(t *testing.T, n int) {
	t.Helper()
	h.command(t, n, tx.Accept{Accepted: accepted(n)})
	if n%2 == 1 {
		switch n % 5 {
		case 0: // still claimed
			return
		case 1:
			h.command(t, n, tx.Cancel{Reason: "owner", At: began})
			return
		case 2:
			h.command(t, n, tx.DoubtGroup{Reason: "unknown", Block: block(1), At: began})
		}
		h.command(t, n, confirm)
	}
	h.join(t, n)
	switch n % 7 {
	case 1, 2:
		h.command(t, n, mined)
	case 3:
		h.command(t, n, mined, final, tx.Erase{At: began}, tx.Retire{At: began})
	case 4:
		h.command(t, n, tx.SeeNonce{Block: block(8), Current: 1 << 40, At: began}, final)
	}
}

// project runs the projectors of groups and of transactions up to the head.
func (h *history) project(t *testing.T, db *sql.DB) {
	t.Helper()
	head, err := h.log.Head(t.Context())
	check(t, err)
	for _, p := range []*projector.Projector{
		{Name: groups.Name, Filter: groups.Filter(), Fold: groups.Projection{Groups: group.Codec(), Transactions: tx.Codec()}.Fold},
		{Name: transactions.Name, Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold},
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

// dump is the tables as text, in a fixed order.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	for _, text := range []string{
		"SELECT chain, sender, group_id, nonce_key, position, end_at, 0, 0 FROM groups ORDER BY chain, sender, group_id",
		"SELECT chain, sender, group_id, nonce_key, nonce, eligible_at, position, hash FROM group_members ORDER BY hash",
		"SELECT chain, sender, access_key, hash, position, 0, 0, 0 FROM group_claims ORDER BY hash",
	} {
		rows, err := db.QueryContext(t.Context(), text)
		check(t, err)
		for rows.Next() {
			var row [8]any
			var into []any
			for i := range row {
				into = append(into, &row[i])
			}
			check(t, rows.Scan(into...))
			fmt.Fprintf(&b, "%x\n", row)
		}
		check(t, rows.Err())
		check(t, rows.Close()) //nolint:sqlclosecheck // before the next table is read
	}
	return b.String()
}
