package delivery

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// naming lists requests about a transaction or a group, for each route that can name them.
func (s *shared) naming(hash chain.Hash, id chain.GroupID) map[string][]string {
	one, of := "/v1/transactions/"+hash.String(), groupsPath(s.sender)+"/"+id.String()
	listen := func(filters ...string) (all []string) {
		for _, f := range filters {
			all = append(all, "/v1/events?after=0&until=head&"+f)
		}
		return all
	}
	stream := string(tx.Stream(testChain, hash))
	return map[string][]string{
		"GET /v1/transactions/{hash}":                       {one, one + "?wait=executed&timeout=0", one + "?chainId=1"},
		"DELETE /v1/transactions/{hash}":                    {one},
		"GET /v1/transactions/{hash}/events":                {one + "/events", one + "/events?after=1"},
		"GET /v1/senders/{sender}/groups":                   {groupsPath(s.sender)},
		"GET /v1/senders/{sender}/groups/{groupId}":         {of, of + "?chainId=42431"},
		"POST /v1/senders/{sender}/groups/{groupId}/cancel": {of + "/cancel", of + "/cancel?chainId=42431"},
		"GET /v1/events": listen(
			"hash="+hash.String(), "chainId=42431&hash="+hash.String(), "chainId=1&hash="+hash.String(), "name=tx.&hash="+hash.String(),
			"stream="+stream, "stream="+stream[:len(stream)-1], "stream="+stream[:len("tx-42431-0x")+4], "name=tx.&stream="+stream[:20],
			"groupId="+id.String(), "sender="+s.sender.String()+"&hash="+hash.String(),
			"stream=group-42431-"+s.sender.String()+"-"+id.String(),
		),
	}
}

// asStranger sends a request with a key of a new client. It returns the whole answer and the
// rest of the client's rate.
func (s *shared) asStranger(method, target string, header ...string) string {
	s.t.Helper()
	token, _ := s.keys.Create(access.Key{Scopes: scopesOfClients})
	header = append(header, "X-API-Key", token, "X-Request-Id", "same", "Accept", "application/x-ndjson")
	res, err := s.send(method, target, nil, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	after, err := s.send(http.MethodGet, "/v1/transactions", nil, "X-API-Key", token)
	if err != nil {
		s.t.Fatal(err)
	}
	return wholeAnswer(res) + "then " + after.header.Get("RateLimit")
}

// wholeAnswer is an answer as text, without its date.
func wholeAnswer(res response) string {
	res.header.Del("Date")
	text := fmt.Sprintln(res.status)
	for _, name := range slices.Sorted(maps.Keys(res.header)) {
		text += name + ": " + strings.Join(res.header[name], ", ") + "\n"
	}
	return text + string(res.body) + "\n"
}

// A client that names another client's transaction or group gets the answer for an unknown one,
// on every route, with the same headers and the same charge. This holds the first time, when
// its events are read, and later, when its owner is cached.
func TestForeignIsAnsweredAndChargedAsUnknown(t *testing.T) {
	s := newShared(t, func(c *Config) { c.Rates.Key = rest.Rate{PerSecond: 1, Burst: 10_000} })
	foreign, unknown := s.naming(s.ann, payroll(0).Group()), s.naming(chain.Hash{0xab, 1}, chain.GroupID{0xab})
	forged := "0x" + strings.Repeat("1b", 65)
	tried := 0
	for _, r := range allRoutes(s.config) {
		name := r.Method + " " + r.Path
		if _, there := foreign[name]; !there {
			if strings.Contains(r.Path, "{") && r.Path != "/rpc/{chainId}" && r.Path != "/problems/{code}" || r.Path == "/v1/events" {
				t.Errorf("%s: it is not said how it names a transaction", name)
			}
			continue
		}
		var header []string
		if r.Method == http.MethodPost {
			header = []string{"Authorization", "Signature " + forged}
		}
		for i, target := range foreign[name] {
			want := s.asStranger(r.Method, unknown[name][i], header...)
			for _, when := range []string{"at first", "again"} {
				if d := cmp.Diff(want, s.asStranger(r.Method, target, header...)); d != "" {
					t.Errorf("%s %s, %s (-unknown +another's):\n%s", r.Method, target, when, d)
				}
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("only %d requests name something", tried)
	}
}

// otherEvents records n events of another client's transaction.
func (s *stack) otherEvents(hash chain.Hash, n int) {
	s.t.Helper()
	stream := tx.Stream(1, hash)
	facts := []tx.Event{tx.Accepted{Chain: 1, Hash: hash, Client: "victim", At: testTime}}
	for len(facts) < n {
		facts = append(facts, tx.CanceledLocally{Reason: "x", At: testTime})
	}
	for i, fact := range facts {
		name, data, err := tx.Codec().Encode(fact)
		if err != nil {
			s.t.Fatal(err)
		}
		e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{3}, i), Name: name, Data: data}
		if _, err := s.db.Log().Append(s.t.Context(), stream, eventlog.Version(i), e); err != nil {
			s.t.Fatal(err)
		}
	}
}

// The stream of a client that cannot pay yet stops at the same position as for an unknown
// transaction: its marks do not show where another client's events are.
func TestMarksTellNothingOfAnothers(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) {
		c.Rates.Key = rest.Rate{PerSecond: 1, Burst: 3}
		c.Limits.StreamSilence = 5 * time.Millisecond
	})
	s.otherEvents(otherHash(1), 3*followBatch)
	s.otherEvents(otherHash(2), 3*followBatch)
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3} {
		for _, filter := range []string{"chainId=1&hash=" + otherHash(n).String(), "stream=" + url.QueryEscape(string(tx.Stream(1, otherHash(n))))} {
			c := s.tune("after=0&"+filter, "X-API-Key", keys.Scoped(access.Read))
			for range 5 {
				if at := c.mark(); at != 0 && at != head {
					t.Errorf("transaction %d, %s: the stream stands at %d", n, filter, at)
				}
			}
			c.close()
		}
	}
}

// The charge for a stream does not depend on whether the owners of its events were cached by
// another client's look-up.
func TestRememberedLookUpsTellNothing(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = rest.Rate{PerSecond: 1, Burst: 10_000} })
	for n := range 10 {
		s.otherEvents(otherHash(n), 2)
	}
	for i := range 3 {
		token := keys.Scoped(access.Read)
		for after := 19; after >= 0; after-- { // every other request starts with an uncached transaction
			path := "/v1/events?name=tx.&until=head&after=" + strconv.Itoa(after)
			if _, err := s.send(http.MethodGet, path, nil, "X-API-Key", token, "Accept", "application/x-ndjson"); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.do(http.MethodGet, "/v1/transactions", nil, "X-API-Key", token).header.Get("RateLimit"); !strings.Contains(left, "r=9979;") {
			t.Errorf("client %d has %s left after 21 requests", i, left)
		}
	}
}

// A stream with an id prefix pays for each event that it passes as for eight. This covers the
// look-ups, whether other clients' ids have the prefix or not.
func TestBeginningOfAnIdIsCharged(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Rates.Key = rest.Rate{PerSecond: 1, Burst: 10_000} })
	s.otherEvents(otherHash(1), 1000)
	for _, prefix := range []string{"tx-1-0x0000", "tx-1-0xabcd", "group-1-0xab"} {
		token := keys.Scoped(access.Read)
		if _, err := s.send(http.MethodGet, "/v1/events?after=0&until=head&stream="+prefix, nil, "X-API-Key", token); err != nil {
			t.Fatal(err)
		}
		if left := s.do(http.MethodGet, "/v1/transactions", nil, "X-API-Key", token).header.Get("RateLimit"); !strings.Contains(left, "r=9918;") {
			t.Errorf("%s: %s is left after two requests and a thousand events", prefix, left)
		}
	}
}
