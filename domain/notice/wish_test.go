package notice_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events that have none yet")

var of = notice.EndpointOf("payroll", "https://hooks.example.com/")

func samples() []notice.Event {
	return []notice.Event{
		notice.WasDisabled{Endpoint: of, Reason: notice.SaidGone, At: start},
		notice.WasEnabled{Endpoint: of, At: start},
		notice.RedeliveryAsked{Endpoint: of, Notices: []notice.Ref{{Intent: chain.IntentID{1}, Seq: 2}}, At: start},
	}
}

func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, notice.Codec(), samples(), *update) }

// Decoding any logged bytes returns an event or an error.
func FuzzCodec(f *testing.F) { eventtest.Mutated(f, notice.Codec()) }

// A repeated command adds nothing if it changes nothing.
func TestWishes(t *testing.T) {
	off := notice.Disable{Endpoint: of, Reason: notice.Operator, At: start}
	on := notice.EnableAgain{Endpoint: of, At: start}
	again := notice.SendAgain{Endpoint: of, At: start}
	var w notice.Wishes
	for i, c := range []struct {
		command notice.Command
		want    []notice.Event
		off     notice.Reason
	}{
		{off, []notice.Event{notice.WasDisabled(off)}, notice.Operator},
		{off, nil, notice.Operator},
		{again, []notice.Event{notice.RedeliveryAsked(again)}, notice.Operator},
		{on, []notice.Event{notice.WasEnabled(on)}, notice.Enabled},
		{on, []notice.Event{notice.WasEnabled(on)}, notice.Enabled},
		{notice.Disable{Endpoint: of, Reason: notice.SaidGone}, []notice.Event{notice.WasDisabled{Endpoint: of, Reason: notice.SaidGone}}, notice.SaidGone},
	} {
		got, err := w.Decide(c.command)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("wish %d: %s", i, d)
		}
		for _, e := range got {
			w = w.Evolve(e)
		}
		if w.Off != c.off {
			t.Errorf("after wish %d it is %q", i, w.Off)
		}
	}
	if _, err := w.Decide(notice.SendAgain{Notices: make([]notice.Ref, notice.RedeliverMax+1)}); !errors.Is(err, notice.ErrRedeliver) {
		t.Error(err)
	}
}

// A state restored from its snapshot is the same. The format of schema 1 is frozen: a change
// needs the next number.
func TestSnapshots(t *testing.T) {
	for _, off := range []notice.Reason{notice.Enabled, notice.SaidGone, notice.FailedLong, notice.Operator} {
		w := notice.Wishes{Off: off}
		if back, err := notice.RestoreWishes(w.Snapshot()); err != nil || back != w {
			t.Errorf("%+v is restored as %+v, %v", w, back, err)
		}
		if string(w.Snapshot()) != string(off) || notice.SnapshotSchema != 1 {
			t.Errorf("schema %d writes %q", notice.SnapshotSchema, w.Snapshot())
		}
	}
}

func TestStreams(t *testing.T) {
	if id, err := notice.ParseStream(notice.Stream(of)); err != nil || id != of {
		t.Errorf("%s, %v", id, err)
	}
	for _, bad := range []eventlog.Stream{"", "webhook-", "intent-" + eventlog.Stream(of.String()), notice.Stream(of) + "0", eventlog.Stream(strings.ToUpper(string(notice.Stream(of))))} {
		if id, err := notice.ParseStream(bad); err == nil {
			t.Errorf("%q is read as %s", bad, id)
		}
	}
}
