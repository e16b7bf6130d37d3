package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tempo-watchtower/watchtower/commands"
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
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = Rate{PerSecond: 1, Burst: burst} })
	token, _ := keys.create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop"})
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
	if want := 1 + (stepsMax-1)*stepUnits; paid != want || len(p.Transactions) != 0 || !p.HasMore {
		t.Errorf("a filter that nothing passes yet: paid %d, want %d; %d rows, more %v", paid, want, len(p.Transactions), p.HasMore)
	}
	p, paid = list("status=queued&cursor=" + p.NextCursor)
	if want := 1 + stepUnits; paid != want || len(p.Transactions) != 1 || p.HasMore { // a full step and an empty one
		t.Errorf("the page behind it: paid %d, want %d; %d rows, more %v", paid, want, len(p.Transactions), p.HasMore)
	}
	token, _ = keys.create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop", Rate: &access.Rate{PerSecond: 1, Burst: 15}})
	if p, paid = list("status=queued"); paid != 1+stepUnits || len(p.Transactions) != 0 || !p.HasMore {
		t.Errorf("a client that can pay for two steps: paid %d for %d rows, more %v", paid, len(p.Transactions), p.HasMore)
	}
}

// Groups are charged by the client's own members that they sum up, and by no others.
func TestGroupsAreChargedByOwnMembers(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = Rate{PerSecond: 1, Burst: 1000} })
	s.project("shop", 2*projections.StepRows)
	path := "/v1/senders/0x" + strings.Repeat("0", 40) + "/groups"
	for client, c := range map[string]struct {
		senders []chain.Address
		scope   access.Scope
		want    int
	}{
		"shop":    {nil, access.Read, 2 * stepUnits},
		"other":   {nil, access.Read, 1},
		"bound":   {[]chain.Address{{}}, access.Read, 2 * stepUnits}, // all members are its own
		"auditor": {nil, access.Audit, 1},
	} {
		want := c.want
		token, _ := keys.create(access.Key{Scopes: []access.Scope{access.Read, c.scope}, Client: client, Senders: c.senders})
		for _, path := range []string{path, path + "/0x" + strings.Repeat("0", 32)} {
			before := left(t, s.do(http.MethodGet, "/health", nil, "X-API-Key", token))
			res := s.do(http.MethodGet, path, nil, "X-API-Key", token)
			if paid := before - left(t, res); paid != want {
				t.Errorf("%s, %s: paid %d, want %d: %d", client, path, paid, want, res.status)
			}
		}
	}
	s = newStack(t, func(c *Config) { c.Rates.Address = Rate{PerSecond: 1, Burst: 1000} }) // all clients are one
	s.project("shop", projections.StepRows)
	before := left(t, s.get("/health"))
	if paid := before - left(t, s.get(path)); paid != stepUnits {
		t.Errorf("without keys: paid %d, want %d", paid, stepUnits)
	}
}

// One client's lists have half of the places at most. Of the waiting lists, the next is one of
// the client with the fewest places.
func TestListsTakeTurns(t *testing.T) { takeTurns(t, NewLists, listPlaces, listShare, listQueue) }

// takeTurns tests places of which two clients can have all. At most line reads of one client
// wait; 0: any number.
func takeTurns(t *testing.T, places func() *Places, all, share, line int) {
	synctest.Test(t, func(t *testing.T) {
		l, flood, other := places(), holder{keyed: true, client: "flood"}, holder{address: client{address: netip.MustParseAddr("192.0.2.1")}}
		ctx, stop := context.WithCancel(t.Context())
		entered := map[holder]chan func(){flood: make(chan func(), 64), other: make(chan func(), 64)}
		enter := func(of holder, times int) {
			for range times {
				go func() {
					if leave, err := l.Enter(ctx, of); err == nil {
						entered[of] <- leave
					}
				}()
			}
			synctest.Wait()
		}
		expect := func(flooding, others int) {
			t.Helper()
			if f, o := len(entered[flood]), len(entered[other]); f != flooding || o != others {
				t.Fatalf("the flood has %d places and the other client %d, want %d and %d", f, o, flooding, others)
			}
		}
		enter(flood, share+max(line, 20))
		expect(share, 0)
		if line > 0 {
			if _, err := l.Enter(ctx, flood); !errors.Is(err, commands.ErrTooManyWait) {
				t.Fatalf("more than %d reads of one client wait: %v", line, err)
			}
		}
		enter(other, share+1)
		expect(share, share)
		(<-entered[flood])() // its next one gets the place, for the other has its share
		synctest.Wait()
		expect(share, share)
		(<-entered[other])()
		synctest.Wait()
		expect(share, share)
		stop() // nobody waits any longer
		synctest.Wait()
		for _, places := range entered {
			for len(places) > 0 {
				(<-places)()
			}
		}
		allFree(t, l, all)
	})
}

// allFree tests that all places are free.
func allFree(t *testing.T, p *Places, all int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for i := range all {
		leave, err := p.Enter(ctx, holder{keyed: true, client: fmt.Sprint("client ", i)})
		if err != nil {
			t.Fatalf("%d of %d places are free: %v", i, all, err)
		}
		defer leave()
	}
}
