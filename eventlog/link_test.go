package eventlog_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

func sample() eventlog.Event {
	return eventlog.Event{
		ID: eventlog.ID{1}, Name: "tx.mined.v2", Data: []byte(`{"a":1}`),
		Meta: eventlog.Meta{Correlation: eventlog.ID{2}, Causation: eventlog.ID{3}, Actor: "watcher", Trace: "00-1-2-01"},
	}
}

// The digest is computed as documented, by an independent implementation.
func TestLinkIsAsDocumented(t *testing.T) {
	previous := eventlog.Link{9}
	h := sha256.New()
	for _, f := range [][]byte{
		[]byte("watchtower.event.link.v1"), previous[:], []byte("tx-1-0xab"), {0, 0, 0, 0, 0, 0, 0, 7},
		append([]byte{1}, make([]byte, 15)...), []byte("tx.mined.v2"), []byte(`{"a":1}`),
		append([]byte{2}, make([]byte, 15)...), append([]byte{3}, make([]byte, 15)...), []byte("watcher"), []byte("00-1-2-01"),
	} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		h.Write(f)
	}
	if got := previous.Next("tx-1-0xab", 7, sample()); got != eventlog.Link(h.Sum(nil)) {
		t.Errorf("%s, want %x", got, h.Sum(nil))
	}
}

// Every recorded part of an event changes the link, except the parts that only a store knows.
func TestLinkCovers(t *testing.T) {
	link := func(stream eventlog.Stream, v eventlog.Version, change func(*eventlog.Event)) eventlog.Link {
		e := sample()
		change(&e)
		return eventlog.Link{}.Next(stream, v, e)
	}
	plain := link("s", 1, func(*eventlog.Event) {})
	seen := map[eventlog.Link]string{plain: "nothing"}
	for name, got := range map[string]eventlog.Link{
		"previous":    eventlog.Link{1}.Next("s", 1, sample()),
		"stream":      link("t", 1, func(*eventlog.Event) {}),
		"version":     link("s", 2, func(*eventlog.Event) {}),
		"id":          link("s", 1, func(e *eventlog.Event) { e.ID[15]++ }),
		"name":        link("s", 1, func(e *eventlog.Event) { e.Name = "tx.mined.v1" }),
		"data":        link("s", 1, func(e *eventlog.Event) { e.Data = []byte(`{"a":2}`) }),
		"correlation": link("s", 1, func(e *eventlog.Event) { e.Meta.Correlation[15]++ }),
		"causation":   link("s", 1, func(e *eventlog.Event) { e.Meta.Causation[15]++ }),
		"actor":       link("s", 1, func(e *eventlog.Event) { e.Meta.Actor += "0" }),
		"trace":       link("s", 1, func(e *eventlog.Event) { e.Meta.Trace = "" }),
		"the border":  link("s", 1, func(e *eventlog.Event) { e.Meta.Actor, e.Meta.Trace = "watcher0", "0-1-2-01" }),
	} {
		if other := seen[got]; other != "" {
			t.Errorf("changing %s and changing %s give the same link", name, other)
		}
		seen[got] = name
	}
	if again := link("s", 1, func(e *eventlog.Event) { e.Meta.Link[0]++ }); again != plain {
		t.Error("a link depends on what stood in its place")
	}
}

func TestLinkText(t *testing.T) {
	l := eventlog.Link{0: 0xab, 31: 1}
	text, err := json.Marshal(eventlog.Meta{Link: l})
	if err != nil {
		t.Fatal(err)
	}
	var back eventlog.Meta
	if err := json.Unmarshal(text, &back); err != nil || back.Link != l {
		t.Errorf("%s: %v", text, err)
	}
	if text, _ := json.Marshal(eventlog.Meta{}); string(text) != "{}" {
		t.Errorf("no link is written as %s", text)
	}
	for _, bad := range []string{"", "ab", l.String()[:63] + "g", l.String() + "00"} {
		if new(eventlog.Link).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q was taken for a link", bad)
		}
	}
}

func BenchmarkLink(b *testing.B) {
	e := sample()
	e.Data = make([]byte, 600)
	var l eventlog.Link
	b.ReportAllocs()
	for b.Loop() {
		l = l.Next("tx-42431-0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 3, e)
	}
}
