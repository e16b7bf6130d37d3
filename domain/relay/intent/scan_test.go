package intent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// byTags decodes requests by struct tags only.
func byTags() eventlog.Codec[Event] {
	return eventlog.NewCodec(eventlog.As[Event, Requested]("intent.requested.v1"))
}

// plainRequests are requests that the hand-written decoder reads: those without escapes.
func plainRequests() []Requested {
	full := whole()
	full.Subject, full.Metadata = "Alice", map[string]string{"invoice": "4711", "branch": "Zug"}
	full.NotBefore = 1_800_000_000
	full.Webhooks = []Webhook{{URL: "https://hooks.example.com/watch"}, {URL: "https://other.example.com/"}}
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	return []Requested{
		{ID: full.ID(), Digest: full.Digest(), Request: full, At: at},
		{Request: Request{Calls: []Call{{}}}, Origin: Origin{eventlog.ID{1, 15: 2}, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, At: at},
		{Request: Request{Calls: []Call{{}}}, Origin: Origin{Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
		{Request: Request{Calls: []Call{{}}}},
		{Request: Request{Key: "k", From: From{Pool: "hot"}, Calls: []Call{{Data: make(Data, 100)}, {To: &chain.Address{}}}, Metadata: map[string]string{"": ""}}},
	}
}

// The hand-written decoder reads the requests that are written now, with the same result as the tags.
func TestScan(t *testing.T) {
	for _, r := range plainRequests() {
		_, data, err := Codec().Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		s := eventlog.NewScan(data)
		if got := scanRequested(s); !s.Done() || cmp.Diff(r, got) != "" {
			t.Errorf("read by hand: %v, %s\n%s", s.Done(), data, cmp.Diff(r, got))
		}
	}
}

// The hand-written decoder agrees with JSON decoding on all data that it accepts.
func FuzzScan(f *testing.F) {
	for _, r := range append(plainRequests(), Requested{Request: whole()}) {
		_, data, err := Codec().Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, calls := range []string{`[]`, `null`, `[{}]`, `[{"data":"0x"}]`, `[{"data":"0x0"}]`, `[{"data":"0xCAfe"}]`, `[{"value":"007"}]`, `[{},]`, `[{}{}]`} {
		id, hash := chain.IntentID{}.String(), chain.Hash{}.String()
		f.Add([]byte(`{"id":"` + id + `","digest":"` + hash + `","request":{"key":"k","chain":1,"calls":` + calls + `,"metadata":{"a":"1","a":"2"}},"at":"2026-11-21T03:04:05Z"}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := eventlog.NewScan(data)
		got := scanRequested(s)
		if !s.Done() {
			return
		}
		want, err := byTags().Decode("intent.requested.v1", data)
		if err != nil || cmp.Diff(want, Event(got)) != "" {
			t.Errorf("%s: by hand %+v, by tags %+v, %v", data, got, want, err)
		}
	})
}
