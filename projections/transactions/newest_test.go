package transactions_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// The newest acceptance of a sender is the client's own, or a transaction of the sender itself. Others
// make it no newer by naming the sender. It is read by an index.
func TestNewest(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		fill(t, db) // row n is at position n+1
		claim := func(n int) {
			hash := hashOf(n)
			_, err := db.ExecContext(t.Context(), `INSERT INTO transaction_claims (hash, chain, position) VALUES ($1, 1, $2)`, hash[:], n+1)
			check(t, err)
		}
		q := transactions.Query{DB: db}
		for _, c := range []struct {
			name   string
			before func()
			sender chain.Address
			names  []string
			all    bool
			want   event.Position
		}{
			{"a client", nil, senderOf(6), []string{"client 6"}, false, 5407},
			{"a client of another sender", nil, senderOf(7), []string{"client 6"}, false, 0},
			{"names", nil, senderOf(6), []string{"client 6", "client 106"}, false, 5707},
			{"many names", nil, senderOf(6), append(manyNames(), "client 6"), false, 5407},
			{"all", nil, senderOf(6), []string{"nobody"}, true, 5707},
			{"all but claims", func() { claim(5706) }, senderOf(6), []string{"nobody"}, true, 5407},
			{"an own claim", nil, senderOf(6), []string{"client 106"}, true, 5707},
		} {
			if c.before != nil {
				c.before()
			}
			got, err := q.Newest(t.Context(), c.sender, c.names, c.all)
			check(t, err)
			if got != c.want {
				t.Errorf("%s: %d, want %d", c.name, got, c.want)
			}
		}
		for name, statement := range transactions.NewestStatements(senderOf(6), []string{"client 6", "nobody"}) {
			text, args := statement()
			explained := testenv.Explain(t, db, text, args...)
			index := map[string]string{"of a client": "transaction_owners_sender", "of a sender": "transactions_sender"}[name]
			if whole := strings.ReplaceAll(explained, "Seq Scan on transaction_claims", ""); !strings.Contains(explained, index) || strings.Contains(whole, "Seq Scan") {
				t.Errorf("%s: not by %s:\n%s", name, index, explained)
			}
		}
	})
}
