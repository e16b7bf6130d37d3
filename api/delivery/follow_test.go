package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestFollow(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	s.submit(signed(t, key, testChain, 0)) // before any client listens
	c := s.tune("")
	if kind := c.res.Header.Get("Content-Type"); kind != "text/event-stream" || c.res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("answered %s, %v", kind, c.res.Header)
	}
	hash := s.submit(signed(t, key, testChain, 1))[0].TxHash
	s.broadcast(hash)
	s.mined(hash)
	got := c.wantNext("tx.accepted.v1", "tx.broadcast.v1", "tx.mined.v1")

	// The stream shows the events of the audit trail, with their stream.
	var trail struct{ Events []object }
	unmarshal(t, s.get("/v1/transactions/"+hash.String()+"/events").body, &trail)
	for i, shown := range got {
		if shown["txHash"] != hash.String() || shown["chainId"] != float64(testChain) || shown["stream"] != string(tx.Stream(testChain, hash)) {
			t.Errorf("%v", shown)
		}
		for _, more := range []string{"txHash", "chainId", "stream"} {
			delete(shown, more)
		}
		if diff := cmp.Diff(trail.Events[i], shown); diff != "" {
			t.Errorf("trail (-), stream (+):\n%s", diff)
		}
	}
	// From position 0 the stream also has the earlier events.
	s.tune("after=0").wantNext("tx.accepted.v1", "tx.accepted.v1", "tx.broadcast.v1", "tx.mined.v1")
	again := s.tune("after=0", "Last-Event-ID", fmt.Sprintf("%.0f", got[0]["position"]))
	again.wantNext("tx.broadcast.v1", "tx.mined.v1")
}

// With include, each event carries its transaction's state right after it, however the stream is
// narrowed, and whether or not the events before it were read.
func TestFollowWithState(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	hash := s.submit(signed(t, key, testChain, 0))[0].TxHash
	s.broadcast(hash)
	other := s.submit(signed(t, key, testChain, 1))[0].TxHash
	s.mined(hash)
	names := []string{"tx.accepted.v1", "tx.broadcast.v1", "tx.accepted.v1", "tx.mined.v1"}
	want := []string{hash.String() + " queued", hash.String() + " broadcasting", other.String() + " queued", hash.String() + " executed"}
	for range 2 { // the second time, later states are remembered
		var got []string
		for _, shown := range s.tune("after=0&include=transaction").wantNext(names...) {
			state := shown["transaction"].(object)
			got = append(got, fmt.Sprint(state["txHash"], " ", state["status"]))
			if mined := shown["name"] == "tx.mined.v1"; (state["receipt"] != nil) != mined || (state["block"] != nil) != mined || state["sender"] == nil || state["nonce"] == nil || state["finalized"] != false {
				t.Errorf("%v", state)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	last := s.tune("after=0&include=transaction&name=tx.mined.").wantNext("tx.mined.v1")[0]["transaction"].(object)
	if receipt := last["receipt"].(object); last["status"] != "executed" || receipt["status"] != float64(1) || receipt["gasUsed"] == nil {
		t.Errorf("%v", last)
	}
	if plain := s.tune("after=0").wantNext(names...)[0]; plain["transaction"] != nil {
		t.Errorf("nobody asked for %v", plain["transaction"])
	}
	wantProblem(t, "include", s.get("/v1/events?include=receipt"), http.StatusBadRequest, "invalid-filter")
}

// A client that is cut at any moment and resumes after the last id misses no event and gets
// none twice, while other writers append.
func TestFollowResume(t *testing.T) {
	const writers, each = 4, 60
	s := newStack(t)
	dice := rand.New(rand.NewPCG(1, 2))
	var writing sync.WaitGroup
	for n := range writers {
		writing.Go(func() {
			for i := range each {
				stream := eventlog.Stream(fmt.Sprintf("tx-1-0x%064x", n*each+i+1))
				e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{1}, 0), Name: "tx.retired.v1", Data: json.RawMessage(`{}`)}
				if _, err := s.db.Log().Append(t.Context(), stream, 0, e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var got, want []string
	last := "0"
	for len(got) < writers*each {
		c := s.tune("after=0", "Last-Event-ID", last)
		for range 1 + dice.IntN(40) {
			shown, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, shown["id"].(string))
			if len(got) == writers*each {
				break
			}
		}
		last = c.last
		c.close()
	}
	writing.Wait()
	for _, e := range s.recorded() {
		want = append(want, e.ID.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-), streams (+):\n%s", diff)
	}
}

// A client further behind than the tail's memory is served from the store until it has caught
// up.
func TestFollowFromFarBehind(t *testing.T) {
	const appends, each = 70, 100 // more than the tail keeps in memory
	s := newStack(t)
	stream := eventlog.Stream("tx-1-0x" + strings.Repeat("ab", 32))
	var version eventlog.Version
	for range appends {
		var events []eventlog.Event
		for i := range each {
			id := eventlog.DeriveID(stream, eventlog.ID{2}, int(version)+i)
			events = append(events, eventlog.Event{ID: id, Name: "tx.retired.v1", Data: json.RawMessage(`{}`)})
		}
		appended, err := s.db.Log().Append(t.Context(), stream, version, events...)
		if err != nil {
			t.Fatal(err)
		}
		version = appended.Version
	}
	c := s.tune("after=0")
	for n := range appends * each {
		shown, err := c.next()
		if err != nil || shown["version"] != float64(n+1) {
			t.Fatalf("event %d: %v, %v", n, shown, err)
		}
	}
	s.submit(signed(t, newKey(t), testChain, 0))
	c.wantNext("tx.accepted.v1")
}

// Marks break the silence, and a client can resume from them too.
func TestFollowMarks(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.StreamSilence = 50 * time.Millisecond })
	c := s.tune("name=tx.mined")
	s.submit(signed(t, newKey(t), testChain, 0))
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == fmt.Sprintf("id: %d\n", head) {
			break
		}
		if strings.HasPrefix(line, "data:") {
			t.Fatalf("%s is not asked for", line)
		}
	}
}

func TestFollowRefused(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.Streams = 1 })
	get := func(query string, header ...string) response {
		t.Helper()
		res, err := s.send(http.MethodGet, "/v1/events?"+query, nil, header...)
		if err != nil {
			t.Fatal(err)
		}
		if res.status != http.StatusOK {
			checkAnswer(t, http.MethodGet, "/v1/events", res)
		}
		return res
	}
	for _, q := range []string{
		"after=-1", "after=x", "after=", "after=1", "after=1&after=1", "sender=1", "groupId=1", "hash=1", "chainId=0", "from=1",
		"name=" + strings.Repeat("a,", namesMax), "ungrouped=true",
	} {
		wantProblem(t, q, get(q), http.StatusBadRequest, rest.ErrInvalidFilter)
	}
	wantProblem(t, "Last-Event-ID", get("after=0", "Last-Event-ID", "x"), http.StatusBadRequest, rest.ErrInvalidFilter)

	c := s.tune("")
	res := get("")
	wantProblem(t, "one too many", res, http.StatusServiceUnavailable, rest.ErrTooManyStreams)
	if res.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	c.close()
	deadline := time.After(30 * time.Second)
	for { // there is room again; HEAD checks it without taking it
		if res, err := s.send(http.MethodHead, "/v1/events", nil); err == nil && res.status == http.StatusOK {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the stream's place was not given back")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A process that is about to stop ends its streams, so that clients reconnect elsewhere.
func TestFollowLeaving(t *testing.T) {
	s := newStack(t)
	c := s.tune("")
	s.submit(signed(t, newKey(t), testChain, 0))
	c.wantNext("tx.accepted.v1")
	s.config.Tail.Leave()
	if _, err := c.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if _, err := strconv.ParseUint(c.last, 10, 64); err != nil {
		t.Error(err)
	}
}

// A client that does not read is disconnected, and its place is free again.
func TestFollowSlowClient(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.Streams, c.Limits.StreamWrite = 1, 200*time.Millisecond })
	c := s.dial()
	defer c.Close() //nolint:errcheck // the test is over with it
	if _, err := io.WriteString(c, "GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	stream := eventlog.Stream("tx-1-0x" + strings.Repeat("cd", 32))
	data := json.RawMessage(`"` + strings.Repeat("x", eventlog.MaxEventBytes-2) + `"`)
	for n := range 64 { // 16 MiB: more than sockets buffer
		e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{4}, n), Name: "tx.retired.v1", Data: data}
		if _, err := s.db.Log().Append(t.Context(), stream, eventlog.Version(n), e); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(30 * time.Second)
	for {
		if res, err := s.send(http.MethodHead, "/v1/events", nil); err == nil && res.status == http.StatusOK {
			return
		}
		select {
		case <-deadline:
			t.Fatal("a client that does not read keeps its stream")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A stream with an end has all events before it, reports the end, and closes. If the log has
// not reached the end yet, the stream waits.
func TestFollowUntil(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.StreamSilence = time.Hour }) // no heartbeat ends it by chance
	key := newKey(t)
	for n := range 3 {
		s.submit(signed(t, key, testChain, uint64(n)))
	}
	for query, want := range map[string]int{
		"after=0&until=head": 3, "after=0&until=2": 2, "after=2&until=head": 1, "after=2&until=1": 0, "until=head": 0,
		"after=0&until=head&name=tx.mined": 0, "after=0&until=0": 0,
	} {
		events, last := s.whole(query)
		if len(events) != want || last["end"] != true {
			t.Errorf("%s: %d events, the last line is %v", query, len(events), last)
		}
	}
	c := s.tune("after=0&until=4") // the last of them is not appended yet
	c.wantNext("tx.accepted.v1", "tx.accepted.v1", "tx.accepted.v1")
	s.submit(signed(t, key, testChain, 3))
	s.submit(signed(t, key, testChain, 4))
	c.wantNext("tx.accepted.v1")
	last, err := io.ReadAll(c.lines)
	if want := "event: end\nid: 4\ndata: {\"position\":4,\"end\":true}\n\n"; err != nil || !strings.HasSuffix(string(last), want) || strings.Contains(string(last), "tx.accepted") {
		t.Errorf("it ends with %q, %v", last, err)
	}
	res, err := s.send(http.MethodGet, "/v1/events?until=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, "until", res, http.StatusBadRequest, rest.ErrInvalidFilter)
}

// whole reads JSON lines until the service closes the stream.
func (s *stack) whole(query string) (events []object, last object) {
	s.t.Helper()
	c := s.tune(query, "Accept", "application/x-ndjson")
	defer c.close()
	for {
		line, err := c.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, last
		}
		if err != nil {
			s.t.Fatal(err)
		}
		last = object{}
		unmarshal(s.t, line, &last)
		if err := matches(s.t, asNumbers(s.t, line), "paths", "/v1/events", "get", "responses", "200", "content", "application/x-ndjson", "schema"); err != nil {
			s.t.Errorf("%s: %v", line, err)
		}
		if last["name"] != nil {
			events = append(events, last)
		}
	}
}
