package eventstoredb_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// A subscription that a node has forgotten, on a connection that is well, goes on all the
// same.
func TestSubscriptionFallsSilent(t *testing.T) {
	server := double(t, esdbtest.Options{})
	l := open(t, server.URL(), eventstoredb.Options{}).log
	l.LookEvery(20 * time.Millisecond)
	stands(t, l, "s", 0, 1)
	version := eventlog.Version(0)
	for b, err := range l.Subscribe(soon(t), 0, eventlog.Filter{}, 10) {
		must(t, err)
		for _, e := range b.Events {
			if version++; e.Version != version {
				t.Fatalf("version %d comes where %d has to", e.Version, version)
			}
		}
		if version == 4 {
			break
		}
		if b.Live { // the server's subscription may have begun, or be about to
			server.Mute()
			stands(t, l, "s", version, 1)
		}
	}
}

// A reader that works on a batch for longer than the server may be silent does not count as
// a silent server.
func TestSlowReaderIsNotASilentServer(t *testing.T) {
	const look, all = 200 * time.Millisecond, 20 * eventlog.MaxAppend // many times the feed's buffer
	server := double(t, esdbtest.Options{})
	var told bytes.Buffer
	l, err := eventstoredb.Open(soon(t), server.URL(), eventstoredb.Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	must(t, err)
	l.LookEvery(look)
	version := eventlog.Version(0)
	for b, err := range l.Subscribe(soon(t), 0, eventlog.Filter{}, all) {
		must(t, err)
		if version == 0 && len(b.Events) == 0 { // it has caught up
			for at := eventlog.Version(0); at < all; at += eventlog.MaxAppend {
				stands(t, l, "s", at, eventlog.MaxAppend)
			}
		}
		if version += eventlog.Version(len(b.Events)); version == all {
			break
		}
		<-time.After(look + look/2) // at work on it
	}
	must(t, l.Close(soon(t)))
	if strings.Contains(told.String(), "sends nothing") {
		t.Error(told.String())
	}
}
