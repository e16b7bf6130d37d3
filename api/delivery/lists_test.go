package delivery

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/projections"
)

// project writes transactions of a client into the read models, as members of one group. Only
// the oldest of them is queued.
func (s *stack) project(client string, rows int) {
	s.t.Helper()
	const numbers = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1)`
	for _, text := range []string{
		`INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, group_id, status, data)
			SELECT $2, unhex(printf('%064x', n)), n, 1, zeroblob(20), zeroblob(32), zeroblob(16), iif(n = 1, 'queued', 'executed'),
			printf('{"Position":%d,"Version":1,"State":{"Status":"%s","Accepted":{"chain":%d,"hash":"0x%064x","type":118,"signature":"secp256k1"}}}',
				n, iif(n = 1, 'queued', 'executed'), $2, n) FROM n WHERE $3 <> ''`,
		`INSERT INTO ownership (hash, chain, owner, position, sender, group_id)
			SELECT unhex(printf('%064x', n)), $2, $3, n, zeroblob(20), zeroblob(16) FROM n`,
		`INSERT INTO group_members (hash, chain, sender, group_id, nonce_key, nonce, eligible_at, position)
			SELECT unhex(printf('%064x', n)), $2, zeroblob(20), zeroblob(16), zeroblob(32), n, 0, n FROM n WHERE $3 <> ''`,
	} {
		if _, err := s.db.View().ExecContext(s.t.Context(), numbers+text, rows, int64(testChain), []byte(client)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// left is the client's rate left after an answer.
func left(t *testing.T, res response) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(res.header.Get("Ratelimit"), ";r=")
	if _, err := fmt.Sscan(strings.Split(rest, ";")[0], &n); err != nil {
		t.Fatalf("%s: %v", res.header.Get("Ratelimit"), err)
	}
	return n
}

// A list with a selective filter is charged for each thousand rows that it reads. A page ends
// short after twenty thousand rows, or when the client cannot pay for more, and the next page
// continues from there.
func TestListsAreChargedByTheRowsTheyRead(t *testing.T) {
	const rows, burst = 21 * projections.StepRows, 1000
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = rest.Rate{PerSecond: 1, Burst: burst} })
	token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop"})
	s.project("shop", rows)
	list := func(query string) (p page, paid int) {
		before := left(t, s.do(http.MethodGet, "/health", nil, "X-API-Key", token))
		res := s.do(http.MethodGet, "/v1/transactions?"+query, nil, "X-API-Key", token)
		if res.status != http.StatusOK {
			t.Fatal(res)
		}
		unmarshal(t, res.body, &p)
		return p, before - left(t, res)
	}
	if p, paid := list("status=executed&limit=30"); paid != 1 || len(p.Transactions) != 30 || !p.HasMore {
		t.Errorf("a page of few rows: paid %d for %d rows, more %v", paid, len(p.Transactions), p.HasMore)
	}
	p, paid := list("status=queued")
	if want := 1 + (stepsMax-1)*rest.StepUnits; paid != want || len(p.Transactions) != 0 || !p.HasMore {
		t.Errorf("a filter that nothing passes yet: paid %d, want %d; %d rows, more %v", paid, want, len(p.Transactions), p.HasMore)
	}
	p, paid = list("status=queued&cursor=" + p.NextCursor)
	if want := 1 + rest.StepUnits; paid != want || len(p.Transactions) != 1 || p.HasMore { // a full step and an empty one
		t.Errorf("the page behind it: paid %d, want %d; %d rows, more %v", paid, want, len(p.Transactions), p.HasMore)
	}
	token, _ = keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop", Rate: &access.Rate{PerSecond: 1, Burst: 15}})
	if p, paid = list("status=queued"); paid != 1+rest.StepUnits || len(p.Transactions) != 0 || !p.HasMore {
		t.Errorf("a client that can pay for two steps: paid %d for %d rows, more %v", paid, len(p.Transactions), p.HasMore)
	}
}

// Groups are charged by the client's own members that they sum up, and by no others.
func TestGroupsAreChargedByOwnMembers(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = rest.Rate{PerSecond: 1, Burst: 1000} })
	s.project("shop", 2*projections.StepRows)
	path := "/v1/senders/0x" + strings.Repeat("0", 40) + "/groups"
	for client, c := range map[string]struct {
		senders []chain.Address
		scope   access.Scope
		want    int
	}{
		"shop":    {nil, access.Read, 2 * rest.StepUnits},
		"other":   {nil, access.Read, 1},
		"bound":   {[]chain.Address{{}}, access.Read, 2 * rest.StepUnits}, // all members are its own
		"auditor": {nil, access.Audit, 1},
	} {
		want := c.want
		token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read, c.scope}, Client: client, Senders: c.senders})
		for _, path := range []string{path, path + "/0x" + strings.Repeat("0", 32)} {
			before := left(t, s.do(http.MethodGet, "/health", nil, "X-API-Key", token))
			res := s.do(http.MethodGet, path, nil, "X-API-Key", token)
			if paid := before - left(t, res); paid != want {
				t.Errorf("%s, %s: paid %d, want %d: %d", client, path, paid, want, res.status)
			}
		}
	}
	s = newStack(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 1000} }) // all clients are one
	s.project("shop", projections.StepRows)
	before := left(t, s.get("/health"))
	if paid := before - left(t, s.get(path)); paid != rest.StepUnits {
		t.Errorf("without keys: paid %d, want %d", paid, rest.StepUnits)
	}
}
