package transactions_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// The newest acceptance of a sender is the client's own, or a transaction of the sender itself. Others
// make it no newer by naming the sender. It is read by an index.
func TestNewest(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		fill(t, db) // row n is at position n+1
		claim := func(n int) {
			hash, sender := hashOf(n), senderOf(n)
			_, err := db.ExecContext(t.Context(), `DELETE FROM ownership WHERE hash = $1 AND owner = $2`, hash[:], sender[:])
			check(t, err)
		}
		q := transactions.Query{DB: db}
		for _, c := range []struct {
			name   string
			before func()
			sender chain.Address
			names  []string
			all    bool
			want   eventlog.Position
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
		text, args := transactions.NewestStatement(senderOf(6), []string{"client 6", "nobody"})
		if explained := testenv.Explain(t, db, text, args...); !strings.Contains(explained, "ownership_sender") || strings.Contains(explained, "Seq Scan") {
			t.Errorf("not by the index of senders:\n%s", explained)
		}
	})
}

// A list of a key that is bound to a sender reads no claim of another client: its first step has all of
// the rows, whatever the number of claims. Claims of the client itself are listed.
func TestBoundListReadsNoClaims(t *testing.T) {
	const claims, own = 3 * projections.StepRows, 5
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		sender, others := chain.Address{1}, chain.Address{2}
		insert := func(n int, owners ...string) {
			hash := hashOf(n)
			_, err := db.ExecContext(t.Context(), `INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, status, data)
				VALUES (1, $1, $2, 1, $3, $4, 'queued', $5)`, hash[:], n+1, sender[:], make([]byte, 32), fmt.Appendf(nil, `{"position":%d}`, n+1))
			check(t, err)
			for _, owner := range owners {
				_, err := db.ExecContext(t.Context(), `INSERT INTO ownership (hash, chain, owner, position, sender) VALUES ($1, 1, $2, $3, $4)`,
					hash[:], []byte(owner), n+1, sender[:])
				check(t, err)
			}
		}
		for n := range own {
			insert(n, "ann", string(sender[:]))
		}
		insert(own, "ann") // a claim
		for n := own + 1; n <= own+claims; n++ {
			insert(n, "bob")
		}
		q := transactions.Query{DB: db}
		for name, within := range map[string]transactions.Within{
			"one sender":  {Owners: []string{"ann"}, Senders: []chain.Address{sender}},
			"two senders": {Owners: []string{"ann", "older name"}, Senders: []chain.Address{others, sender}},
		} {
			for limit, more := range map[int]bool{100: false, 2: true} {
				rows, rest, err := q.Step(t.Context(), transactions.Filters{Within: &within}, 0, limit)
				check(t, err)
				want := []eventlog.Position{6, 5, 4, 3, 2, 1}[:min(limit, own+1)]
				if d := cmp.Diff(want, positions(rows)); d != "" || (rest != 0) != more {
					t.Errorf("%s, at most %d: the first step ends at %d, and has (-want +got):\n%s", name, limit, rest, d)
				}
			}
		}
	})
}
