package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded makes events at dense positions, in a few recurring streams.
func recorded(first eventlog.Position, n int) (events []eventlog.Recorded) {
	versions := map[eventlog.Stream]eventlog.Version{}
	for i := range n {
		stream := eventlog.Stream(fmt.Sprintf("tx-1-%d", (i*i)%97))
		versions[stream]++
		events = append(events, eventlog.Recorded{
			Event: eventlog.Event{
				ID: eventlog.DeriveID(stream, eventlog.ID{1}, i), Name: "tx.happened.v1", Data: fmt.Appendf(nil, `{ "n": %d, "html": "<&>" }`, i),
				Meta: eventlog.Meta{Actor: "test", Link: eventlog.Link{byte(i)}},
			},
			Stream: stream, Version: versions[stream], Position: first + eventlog.Position(i), At: time.UnixMicro(1_800_000_000_000_000 + int64(i)).UTC(),
		})
	}
	return events
}

func batches(events []eventlog.Recorded, size int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for len(events) > 0 {
			n := min(size, len(events))
			if !yield(eventlog.Batch{Events: events[:n], Next: events[n-1].Position}, nil) {
				return
			}
			events = events[n:]
		}
	}
}

func write(t testing.TB, dir string, events []eventlog.Recorded, size int) (*Files, archive.Segment) {
	t.Helper()
	files := NewFiles(Dir(dir), nil)
	first := events[0].Position
	s, err := files.Write(context.Background(), eventlog.ID{7}, first, first+eventlog.Position(len(events)), batches(events, size))
	if err != nil {
		t.Fatal(err)
	}
	return files, s
}

// Every field of an event survives. The test fails if a new field is not stored.
func TestRecord(t *testing.T) {
	var want eventlog.Recorded
	set(reflect.ValueOf(&want).Elem())
	want.At = time.UnixMicro(1_800_000_000_123_456).UTC()
	for _, want := range []eventlog.Recorded{want, {Event: eventlog.Event{Data: []byte{}}, At: time.UnixMicro(0).UTC()}} {
		got, rest, err := takeRecord(appendRecord(nil, want))
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(rest) != 0 {
			t.Errorf("%v, %d bytes left: %s", err, len(rest), diff)
		}
	}
}

// set fills all fields.
func set(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			set(v.Index(i))
		}
	case reflect.Slice:
		v.SetBytes([]byte(`{"some": "thing"}`))
	case reflect.String:
		v.SetString("text")
	default:
		v.SetUint(7)
	}
}

// Reading any bytes gives events or an error.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, recorded(1, 1)[0]))
	f.Add([]byte{3, 1, 200, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		for left := data; len(left) > 0; {
			var err error
			before := len(left)
			if _, left, err = takeRecord(left); err != nil {
				return
			}
			if len(left) >= before {
				t.Fatal("a record of nothing")
			}
		}
	})
}

// The file does not depend on the log's paging, and reads back as written.
func TestSegment(t *testing.T) {
	want := recorded(1001, 3000)
	files, s := write(t, t.TempDir(), want, 1000)
	if _, other := write(t, t.TempDir(), want, 7); other != s {
		t.Errorf("in other pages it is %+v, not %+v", other, s)
	}
	for _, after := range []eventlog.Position{0, 1000, 1001, 2047, 3999, 4000} {
		var got []eventlog.Recorded
		for events, err := range files.Read(t.Context(), s, after) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, events...)
		}
		rest := want[min(max(int(after)-1000, 0), len(want)):]
		if diff := cmp.Diff(rest, got); len(rest)+len(got) > 0 && diff != "" {
			t.Errorf("after %d: %s", after, diff)
		}
	}
	byStream := map[eventlog.Stream][]eventlog.Recorded{}
	for _, r := range want {
		byStream[r.Stream] = append(byStream[r.Stream], r)
	}
	for stream, want := range byStream {
		got, err := files.Stream(t.Context(), s, stream, 1)
		if diff := cmp.Diff(want[1:], got); err != nil || len(want) > 1 && diff != "" {
			t.Errorf("%s: %v, %s", stream, err, diff)
		}
	}
	if got, err := files.Stream(t.Context(), s, "tx-none", 0); err != nil || len(got) > 0 {
		t.Errorf("a stream that is not there: %v, %v", got, err)
	}
}

// An incomplete range makes no segment and leaves no file.
func TestNoHalfSegment(t *testing.T) {
	events := recorded(1, 100)
	gap := append(append([]eventlog.Recorded{}, events[:50]...), events[51:]...)
	twice := append(append([]eventlog.Recorded{}, events[:51]...), events[50:]...)
	for name, given := range map[string][]eventlog.Recorded{"short": events[:99], "a gap": gap, "one twice": twice, "none": nil} {
		dir := t.TempDir()
		_, err := NewFiles(Dir(dir), nil).Write(t.Context(), eventlog.ID{1}, 1, 101, batches(given, 9))
		left, globErr := filepath.Glob(filepath.Join(dir, "*"))
		if err == nil || globErr != nil || len(left) > 0 {
			t.Errorf("%s: %v; left: %v, %v", name, err, left, globErr)
		}
	}
}

// These are detected, with the file's name: a flipped bit anywhere in the file, a truncated or
// longer file, and another valid segment.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	_, s := write(t, dir, recorded(1, 1500), 100)
	name := filepath.Join(dir, s.Name)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test's dice
	found := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := NewFiles(Dir(dir), nil).Verify(context.Background(), s)
		if !errors.Is(err, archive.ErrDamaged) || !contains(err, s.Name) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	at := []int{0, 7, 8, 60, 100, headerBytes - 1, headerBytes, len(sound) - 1, len(sound) - footerBytes, len(sound) - footerBytes - 1}
	for range 200 {
		at = append(at, dice.IntN(len(sound)))
	}
	for _, i := range at {
		data := append([]byte(nil), sound...)
		data[i] ^= 1 << dice.IntN(8)
		found(fmt.Sprintf("byte %d of %d", i, len(sound)), data)
	}
	for _, n := range []int{0, 1, headerBytes, len(sound) / 2, len(sound) - 1} {
		found(fmt.Sprint("cut at ", n), sound[:n])
	}
	found("longer", append(append([]byte(nil), sound...), 0))
	otherDir := t.TempDir()
	other := recorded(1, 1500)
	other[700].Data = []byte(`{"n": "another"}`)
	_, o := write(t, otherDir, other, 100)
	exchanged, err := os.ReadFile(filepath.Join(otherDir, o.Name))
	if err != nil {
		t.Fatal(err)
	}
	found("another", exchanged)
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewFiles(Dir(dir), nil).Verify(t.Context(), s); err != nil {
		t.Error("put back:", err)
	}
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
