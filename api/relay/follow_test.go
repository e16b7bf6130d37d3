package relay

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A listener reads an event stream.
type listener struct {
	t     testing.TB
	res   *http.Response
	lines *bufio.Scanner
}

func (s *stack) listen(query, accept string, header ...string) *listener {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/v1/events"+query, nil)
	check(s.t, err)
	req.Header.Set("Accept", accept)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	check(s.t, err)
	s.t.Cleanup(func() { res.Body.Close() }) //nolint:errcheck // it is over
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != accept {
		s.t.Fatalf("%s: %d %s", query, res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &listener{s.t, res, bufio.NewScanner(res.Body)}
}

// told is an event as a client reads it.
type told struct {
	Position eventlog.Position `json:"position"`
	Intent   chain.IntentID    `json:"intent"`
	Sequence uint64            `json:"sequence"`
	Type     string            `json:"type"`
	At       time.Time         `json:"at"`
	Data     json.RawMessage   `json:"data"`
	Request  intent.Summary    `json:"request"`
	State    intent.Standing   `json:"state"`
}

// next is the next event; ok is false at the end of the stream.
func (l *listener) next() (e told, ok bool) {
	l.t.Helper()
	for l.lines.Scan() {
		line := strings.TrimPrefix(l.lines.Text(), "data: ")
		if !strings.HasPrefix(line, "{") {
			continue // an id, a comment, or an empty line
		}
		e = told{}
		check(l.t, json.Unmarshal([]byte(line), &e))
		if e.Type != "" {
			return e, true
		}
	}
	check(l.t, l.lines.Err())
	return e, false
}

func said(e told) string { return fmt.Sprintf("%s %d %s", e.Intent, e.Sequence, e.Type) }

// A follower gets the events that webhooks get, in order, and resumes where it was cut.
func TestFollow(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		one := into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "one")), http.StatusAccepted).ID
		live := s.listen("?after=0", "text/event-stream")
		s.command(one, assign(), attempted(1))
		other := into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "other")), http.StatusAccepted).ID
		s.command(other, assign())
		s.command(one, seen(1, true))
		want := []string{
			one.String() + " 1 TxAccepted", one.String() + " 2 TxSubmitted", other.String() + " 1 TxAccepted",
			one.String() + " 3 TxReceiptUpdated", one.String() + " 4 TxConfirmed", one.String() + " 5 TxConfirmed",
		}
		var got []string
		var events []told
		for range want {
			e, ok := live.next()
			if !ok {
				t.Fatalf("it ended after %v", got)
			}
			got, events = append(got, said(e)), append(events, e)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		for accept, header := range map[string][]string{
			"text/event-stream": {"Last-Event-ID", fmt.Sprint(uint64(events[2].Position))}, "application/x-ndjson": nil,
		} {
			query := "?until=head"
			if header == nil {
				query += fmt.Sprintf("&after=%d", events[2].Position)
			}
			l := s.listen(query, accept, header...)
			for _, e := range events[3:] {
				got, ok := l.next()
				if d := cmp.Diff(e, got); d != "" || !ok {
					t.Errorf("%s: %s", accept, d)
				}
			}
			if e, ok := l.next(); ok {
				t.Errorf("%s: %+v comes after the end", accept, e)
			}
		}
		l := s.listen("?until=head&after=0&intent="+other.String(), "application/x-ndjson")
		if e, ok := l.next(); !ok || said(e) != want[2] {
			t.Errorf("of one intent: %+v", e)
		}
		if e, ok := l.next(); ok {
			t.Errorf("of one intent: %+v", e)
		}
		told := into[trail](t, s.do(http.MethodGet, "/v1/intents/"+one.String()+"/events", ""), http.StatusOK)
		text, err := json.Marshal(told.Events[3])
		check(t, err)
		var same, streamed map[string]any
		check(t, json.Unmarshal(text, &same))
		text, err = json.Marshal(events[4])
		check(t, err)
		check(t, json.Unmarshal(text, &streamed))
		for _, member := range []string{"position", "request", "state"} { // the trail is about one intent, which GET shows
			delete(streamed, member)
		}
		if d := cmp.Diff(same, streamed); d != "" {
			t.Errorf("the trail and the stream differ: %s", d)
		}
		for query, code := range map[string]string{
			"?after=x": "invalid-filter", "?after=1000000": "invalid-filter", "?intent=0x1": "invalid-filter", "?until=never": "invalid-filter", "?name=tx": "invalid-filter",
		} {
			s.problem(s.do(http.MethodGet, "/v1/events"+query, ""), 400, code)
		}
	})
}

// A client follows only its own intents.
func TestFollowOwn(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		keys := access.State{}
		token := func(name string, scopes ...access.Scope) string {
			text, id, digest, err := access.NewToken(rand.Reader)
			check(t, err)
			events, err := keys.Decide(access.Create{Key: access.Key{ID: id, Name: name, Digest: digest, Scopes: scopes}, At: epoch})
			check(t, err)
			keys = keys.Evolve(events[0])
			return text
		}
		shop, other := token("shop", access.Submit, access.Read), token("other", access.Submit, access.Read)
		operator := token("operator", access.Read, access.Admin)
		s := open(func(c *Config) {
			c.API.Access = rest.Access{Keys: func() access.State { return keys }}
			c.Client = func(k access.Key) string { return k.Name }
		})
		var ids []chain.IntentID
		for _, key := range []string{shop, other} {
			ids = append(ids, into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "k"), "X-API-Key", key), http.StatusAccepted).ID)
			s.command(ids[len(ids)-1], assign())
		}
		for _, c := range []struct {
			query, key string
			want       []chain.IntentID
		}{
			{"", shop, ids[:1]}, {"", other, ids[1:]}, {"", operator, ids}, {"&client=other", operator, ids[1:]}, {"&intent=" + ids[1].String(), shop, nil},
		} {
			l := s.listen("?after=0&until=head"+c.query, "application/x-ndjson", "X-API-Key", c.key)
			var got []chain.IntentID
			for e, ok := l.next(); ok; e, ok = l.next() {
				got = append(got, e.Intent)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.query, d)
			}
		}
		s.problem(s.do(http.MethodGet, "/v1/events?client=other", "", "X-API-Key", shop), 403, "forbidden")
		s.problem(s.do(http.MethodGet, "/v1/events", ""), 401, "unauthorized")
	})
}

// An event that is not public costs a client no look-up of its owner.
func TestHiddenEventsAreNotLookedUp(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		create := func(key string) chain.IntentID {
			return into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, key)), http.StatusAccepted).ID
		}
		one, other := create("one"), create("other")
		seen := &spy{stream: stream(one)}
		replica := open(func(c *Config) {
			desk := *c.Intake
			seen.Store = desk.Intents.Store
			desk.Intents.Store, c.Intake = seen, &desk
		})
		s.command(one, assign())
		assigned, err := s.config.Intake.Intents.Store.Head(t.Context())
		check(t, err)
		s.command(one, intent.Requeue{Assignment: 1, Token: 1, Evidence: intent.Evidence{Kind: intent.Released}, At: epoch})
		s.command(other, assign())
		for range 2 {
			l := replica.listen(fmt.Sprintf("?after=%d&until=head", assigned), "application/x-ndjson")
			if e, ok := l.next(); !ok || said(e) != other.String()+" 1 TxAccepted" {
				t.Errorf("the follower gets %+v", e)
			}
		}
		if n := seen.reads.Load(); n != 0 {
			t.Errorf("the owner of an event that is not public was looked up %d times", n)
		}
	})
}

// An event that cannot be decoded stops only streams of its owner.
func TestUnreadableEventsOfOthers(t *testing.T) {
	var requested, decoded atomic.Int64
	h := newHooked(t)
	older := h.open(t, h.db.Log(), h.db.View(), func(c *Config) { c.Intake.Intents.Codec = countingCodec(&requested, &decoded) })
	ann, bob := h.token("ann", access.Submit, access.Read), h.token("bob", access.Submit, access.Read)
	create := func(token string) chain.IntentID {
		return into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "k"), "X-API-Key", token), http.StatusAccepted).ID
	}
	foreign, own := create(ann), create(bob)
	h.command(foreign, assign())
	assigned, err := h.db.Log().Head(t.Context())
	check(t, err)
	h.command(foreign, attempted(1)) // the older process cannot decode it
	h.command(own, assign())
	l := older.listen(fmt.Sprintf("?after=%d&until=head", assigned), "application/x-ndjson", "X-API-Key", bob)
	if e, ok := l.next(); !ok || said(e) != own.String()+" 1 TxAccepted" {
		t.Errorf("the follower gets %+v", e)
	}
}
