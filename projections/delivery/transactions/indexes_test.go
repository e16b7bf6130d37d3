package transactions_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// fill writes rows of 300 senders without a log; a third of the senders have one transaction in
// each of 20 groups. Only the way of finding the rows matters here.
func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	const rows = 6000
	dbtx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range rows {
		sender, hash := senderOf(n), hashOf(n)
		group := []byte(nil)
		if n%3 == 0 {
			group = make([]byte, 16)
			group[15] = byte(n / 300 % 20)
		}
		status := tx.StatusExecuted
		if n%500 == 1 {
			status = tx.StatusRetry
		}
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, group_id, status, data)
			VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)`, 1, hash[:], n+1, sender[:], make([]byte, 32), group, string(status), []byte("{}"))
		check(t, err)
		for _, owner := range [][]byte{fmt.Appendf(nil, "client %d", n%200), sender[:]} {
			_, err = dbtx.ExecContext(t.Context(), `INSERT INTO ownership (hash, chain, owner, position, sender, group_id) VALUES ($1, $2, $3, $4, $5, $6)`,
				hash[:], 1, owner, n+1, sender[:], group)
			check(t, err)
		}
	}
	check(t, dbtx.Commit())
	for _, table := range []string{"transactions", "ownership"} {
		_, err = db.ExecContext(t.Context(), "ANALYZE "+table)
		check(t, err)
	}
}

func senderOf(n int) chain.Address { return chain.Address{byte(n % 300 >> 8), byte(n % 300)} }

// Chain and hash identify one row.
func TestUnique(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		const insert = `INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, status, data) VALUES ($1, $2, $3, 1, $2, $2, 'queued', $2)`
		for _, row := range []struct {
			chain, position int
			hash            string
			taken           bool
		}{{1, 1, "a", true}, {2, 2, "a", true}, {1, 3, "b", true}, {1, 4, "a", false}} {
			_, err := db.ExecContext(t.Context(), insert, row.chain, []byte(row.hash), row.position)
			if (err == nil) != row.taken {
				t.Errorf("%+v: %v", row, err)
			}
		}
	})
}

// Lists are read by an index, and never scan a whole table.
func TestQueriesUseIndexes(t *testing.T) {
	sender, group := new(senderOf(6)), &chain.GroupID{15: 2}
	client := &transactions.Within{Owners: []string{"client 6"}}
	names := &transactions.Within{Owners: []string{"client 6", "client 7", "nobody"}}
	senders := &transactions.Within{Owners: []string{"client 6"}, Senders: []chain.Address{*sender, senderOf(7)}}
	bound := &transactions.Within{Owners: []string{"client 6"}, Senders: []chain.Address{*sender}}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		fill(t, db)
		for name, tt := range map[string]struct {
			filters transactions.Filters
			index   string
		}{
			"everything":            {transactions.Filters{}, "transactions_position"},
			"a sender":              {transactions.Filters{Sender: sender}, "transactions_sender"},
			"a sender's group":      {transactions.Filters{Sender: sender, Group: group}, "transactions_sender_group"},
			"a group":               {transactions.Filters{Group: group}, "transactions_group"},
			"a sender's others":     {transactions.Filters{Sender: sender, Ungrouped: true}, "transactions_sender"},
			"of a client":           {transactions.Filters{Within: client}, "ownership"},
			"a client's sender":     {transactions.Filters{Within: client, Sender: sender}, "ownership_sender"},
			"a client's group":      {transactions.Filters{Within: client, Sender: sender, Group: group}, "ownership_group"},
			"of a bound key":        {transactions.Filters{Within: bound}, "ownership_sender"},
			"a status, two names":   {transactions.Filters{Within: names, Statuses: []tx.Status{tx.StatusExecuted}}, "ownership"},
			"a chain, three names":  {transactions.Filters{Within: names, Chain: 1}, "ownership"},
			"a status, two senders": {transactions.Filters{Within: senders, Statuses: []tx.Status{tx.StatusExecuted}}, "ownership_sender"},
			"a chain, two senders":  {transactions.Filters{Within: senders, Chain: 1}, "ownership_sender"},
			"a rare status":         {transactions.Filters{Statuses: []tx.Status{tx.StatusRetry}}, "transactions_status"},
		} {
			t.Run(name, func(t *testing.T) {
				explained := explain(t, db, tt.filters)
				whole := explained
				whole = strings.ReplaceAll(whole, "Seq Scan on transactions t", "") // Postgres reads a small table whole to join it
				if !strings.Contains(explained, tt.index+" ") && !strings.Contains(explained, tt.index+"_") || strings.Contains(whole, "Seq Scan") ||
					strings.Contains(explained, "SCAN t\n") || tt.filters.Within != nil && strings.Contains(explained, "transactions_status") {
					t.Errorf("not by %s:\n%s", tt.index, explained)
				}
			})
		}
	})
}

// explain returns the engine's query plan of a list.
func explain(t *testing.T, db *sql.DB, f transactions.Filters) string {
	t.Helper()
	text, args := transactions.ListStatement(f, 100)
	return testenv.Explain(t, db, text, args...)
}
