package tx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// slowly returns a codec that decodes by struct tags only.
func slowly() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Accepted]("tx.accepted.v1"), eventlog.As[Event, Broadcast]("tx.broadcast.v1"), eventlog.As[Event, Rejected]("tx.rejected.v1"),
		eventlog.As[Event, Mined]("tx.mined.v1"), eventlog.As[Event, Finalized]("tx.finalized.v1"), eventlog.As[Event, PayloadErased]("tx.payload_erased.v1"),
	)
}

// quickly maps event names to their hand-written decoders.
var quickly = map[string]func(*eventlog.Scan) Event{ //nolint:gochecknoglobals // a table
	"tx.accepted.v1":       func(s *eventlog.Scan) Event { return scanAccepted(s) },
	"tx.broadcast.v1":      func(s *eventlog.Scan) Event { return scanBroadcast(s) },
	"tx.rejected.v1":       func(s *eventlog.Scan) Event { return scanRejected(s) },
	"tx.mined.v1":          func(s *eventlog.Scan) Event { return scanMined(s) },
	"tx.finalized.v1":      func(s *eventlog.Scan) Event { return scanFinalized(s) },
	"tx.payload_erased.v1": func(s *eventlog.Scan) Event { return scanErased(s) },
}

// scanned decodes data with the hand-written decoder and reports whether it was in that form.
func scanned(name string, data []byte) (Event, bool) {
	s := eventlog.NewScan(data)
	e := quickly[name](s)
	return e, s.Done()
}

// The hand-written decoders read current events, with the same result as the tags.
func TestScan(t *testing.T) {
	for _, full := range samples() {
		name, data, err := Codec().Encode(full)
		if err != nil {
			t.Fatal(err)
		}
		if quickly[name] == nil {
			continue
		}
		if e, ok := scanned(name, data); !ok || cmp.Diff(full, e) != "" {
			t.Errorf("%s is read by hand: %v\n%s", name, ok, cmp.Diff(full, e))
		}
	}
	for _, few := range []Event{Accepted{}, Broadcast{Answers: []Answer{}}, Rejected{Answers: []Answer{{}}}, Mined{}, Finalized{}, PayloadErased{}} {
		name, data, err := Codec().Encode(few)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := scanned(name, data); !ok || cmp.Diff(few, e) != "" {
			t.Errorf("%s is read by hand: %v, %s\n%s", name, ok, data, cmp.Diff(few, e))
		}
	}
}

// The hand-written decoders agree with JSON decoding on all data that they accept.
func FuzzScan(f *testing.F) {
	for _, full := range samples() {
		name, data, err := Codec().Encode(full)
		if err != nil {
			f.Fatal(err)
		}
		if quickly[name] != nil {
			f.Add(name, data)
			var spaced bytes.Buffer
			if err := json.Indent(&spaced, data, "", " "); err != nil {
				f.Fatal(err)
			}
			f.Add(name, spaced.Bytes())
		}
	}
	for _, text := range []string{
		`{"at":"2026-02-30T03:04:05Z"}`, `{"at":"2026-02-28T24:00:00Z"}`, `{"at":"2026-02-28T23:59:60Z"}`, `{"at":"2026-02-28T23:59:59,5Z"}`,
		`{"at":"2026-02-28T23:59:59.1234567891Z"}`, `{"at":"0000-01-01T00:00:00Z"}`, `{"at":"2026-00-10T00:00:00Z"}`, `{"at":"2026-02-28T23:59:59Z"} `,
		`{"at":"2026-02-28t23:59:59Z"}`, `{"at":"2026-02-28T23:59:59.Z"}`, `{"at":null}`, `{"at":"2026-02-28T23:59:59.000000001Z","at":1}`,
	} {
		f.Add("tx.payload_erased.v1", []byte(text))
	}
	for _, n := range []string{"-0", "01", "1e2", "18446744073709551615", "9223372036854775808", "-9223372036854775808", "1.0"} {
		f.Add("tx.broadcast.v1", fmt.Appendf(nil, `{"attempt":%s,"answers":[],"at":"2026-02-28T23:59:59Z"}`, n))
	}
	codec := slowly()
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if quickly[name] == nil {
			return
		}
		quick, ok := scanned(name, data)
		if !ok {
			return
		}
		slow, err := codec.Decode(name, data)
		if d := cmp.Diff(slow, quick); err != nil || d != "" {
			t.Errorf("%s %s is as JSON %v (-json +hand):\n%s", name, data, err, d)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	codec := slowly()
	for _, e := range samples()[:8] {
		name, data, err := Codec().Encode(e)
		if err != nil {
			b.Fatal(err)
		}
		if quickly[name] == nil {
			continue
		}
		b.Run(name+"/hand", func(b *testing.B) {
			for b.Loop() {
				scanned(name, data)
			}
		})
		b.Run(name+"/json", func(b *testing.B) {
			for b.Loop() {
				_, _ = codec.Decode(name, data)
			}
		})
	}
}
