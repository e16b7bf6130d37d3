package delivery

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestFollowFilters(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.StreamSilence = 20 * time.Millisecond })
	ours, theirs := newKey(t), newKey(t)
	one := s.submit(signed(t, ours, testChain, 0))[0]
	other := s.submit(signed(t, theirs, testChain, 0))[0]
	s.broadcast(one.TxHash)
	s.broadcast(other.TxHash)
	sender, err := chain.ParseAddress(one.Sender)
	if err != nil {
		t.Fatal(err)
	}
	member := group.ID{Chain: 1, Sender: sender, Group: chain.GroupID{5}}
	s.append(member.Stream(), "group.joined.v1")
	s.append("secret-stream", "secret.made.v1") // not for clients
	s.mined(one.TxHash)

	for query, want := range map[string]string{
		"":                            "tx.accepted tx.accepted tx.broadcast tx.broadcast group.joined tx.mined",
		"sender=" + one.Sender:        "tx.accepted tx.broadcast group.joined tx.mined",
		"sender=" + other.Sender:      "tx.accepted tx.broadcast",
		"hash=" + one.TxHash.String(): "tx.accepted tx.broadcast tx.mined",
		"hash=" + one.TxHash.String() + "&chainId=42431": "tx.accepted tx.broadcast tx.mined",
		"hash=" + one.TxHash.String() + "&chainId=1":     "",
		"chainId=1":                          "group.joined",
		"groupId=" + member.Group.String():   "group.joined",
		"name=tx.broadcast":                  "tx.broadcast tx.broadcast",
		"name=tx.mined,group.":               "group.joined tx.mined",
		"name=secret":                        "",
		"stream=secret":                      "",
		"stream=group-1-":                    "group.joined",
		"sender=" + one.Sender + "&name=tx.": "tx.accepted tx.broadcast tx.mined",
	} {
		var got []string
		for _, shown := range s.allThat(query) {
			got = append(got, strings.TrimSuffix(shown["name"].(string), ".v1"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
}

// append adds an event without data to a separate stream.
func (s *stack) append(stream eventlog.Stream, name string) eventlog.Position {
	s.t.Helper()
	e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{3}, 0), Name: name, Data: json.RawMessage(`{}`)}
	appended, err := s.db.Log().Append(s.t.Context(), stream, 0, e)
	if err != nil {
		s.t.Fatal(err)
	}
	return appended.Position
}

// allThat reads a stream as JSON lines from position 0 to the log's end. Marks in it show its
// progress.
func (s *stack) allThat(query string, header ...string) (all []object) {
	s.t.Helper()
	head, err := s.db.Log().Head(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.tune("after=0&"+query, append(header, "Accept", "application/x-ndjson")...)
	defer c.close()
	if kind := c.res.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		s.t.Errorf("answered %s", kind)
	}
	for {
		line, err := c.lines.ReadBytes('\n')
		if err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
		var shown object
		unmarshal(s.t, line, &shown)
		if err := matches(s.t, asNumbers(s.t, line), "paths", "/v1/events", "get", "responses", "200", "content", "application/x-ndjson", "schema"); err != nil {
			s.t.Errorf("%s: %v", line, err)
		}
		if shown["name"] != nil {
			if err := checkFollowed(s.t, line); err != nil {
				s.t.Error(err)
			}
			all = append(all, shown)
		}
		if shown["position"].(float64) >= float64(head) {
			return all
		}
	}
}

// The stored filter passes every event that the client wants, and as few others as the store
// can express.
func TestStoredFilter(t *testing.T) {
	hash := chain.Hash{1}
	for _, tt := range []struct {
		filter eventFilter
		want   eventlog.Filter
	}{
		{eventFilter{}, eventlog.Filter{}},
		{eventFilter{chain: 1}, eventlog.Filter{Streams: []string{"tx-1-", "group-1-"}}},
		{eventFilter{names: []string{"tx.mined"}}, eventlog.Filter{Names: []string{"tx.mined"}}},
		{eventFilter{chain: 1, names: []string{"tx.mined"}}, eventlog.Filter{Names: []string{"tx.mined"}}},
		{eventFilter{chain: 1, hash: &hash}, eventlog.Filter{Streams: []string{string(tx.Stream(1, hash))}}},
		{eventFilter{chain: 1, hash: &hash, names: []string{"tx."}}, eventlog.Filter{Streams: []string{string(tx.Stream(1, hash))}}},
		{eventFilter{stream: "tx-42"}, eventlog.Filter{Streams: []string{"tx-42"}}},
		{eventFilter{stream: "tx-42", names: []string{"tx.mined"}}, eventlog.Filter{Streams: []string{"tx-42"}}},
		{eventFilter{stream: "t"}, eventlog.Filter{Streams: []string{"tx-"}}},
		{eventFilter{stream: "tx-", chain: 42}, eventlog.Filter{Streams: []string{"tx-42-"}}},
		{eventFilter{stream: "tx-42-0xab", chain: 42}, eventlog.Filter{Streams: []string{"tx-42-0xab"}}},
	} {
		if d := cmp.Diff(tt.want, tt.filter.stored()); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.filter, d)
		}
	}
}
