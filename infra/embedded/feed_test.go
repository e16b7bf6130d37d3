package embedded_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

func openFeed(t *testing.T, dir string, o embedded.FeedOptions) *embedded.Feed {
	t.Helper()
	f, err := embedded.OpenFeed(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestGroups(t *testing.T) {
	storetest.Groups(t, func(t *testing.T) storetest.Opened[storetest.GroupRows] {
		clock := storetest.MovedClock()
		dir := t.TempDir()
		closed(t, open(t, dir, embedded.Options{}))
		f := openFeed(t, dir, embedded.FeedOptions{Now: clock.Now})
		return storetest.Opened[storetest.GroupRows]{
			Port:  f.Groups(),
			Close: func() error { return f.Close() },
			Reopen: func() storetest.GroupRows {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				f = openFeed(t, dir, embedded.FeedOptions{Now: clock.Now})
				return f.Groups()
			},
			Clock: clock,
		}
	})
}

// Consumers read next to the service, independently of each other, and cannot write its log.
func TestFeedBesideTheService(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	db := open(t, dir, embedded.Options{})
	if _, err := db.Log().Append(ctx, "tx-a", 0, happened(3)...); err != nil {
		t.Fatal(err)
	}
	first, second := openFeed(t, dir, embedded.FeedOptions{}), openFeed(t, dir, embedded.FeedOptions{})
	reading, stop := context.WithCancel(ctx)
	defer stop()
	got := make(chan eventlog.Recorded)
	ended := make(chan error, 2)
	for _, f := range []*embedded.Feed{first, second} {
		go func() {
			for b, err := range f.Subscribe(reading, 0, eventlog.Filter{Streams: []string{"tx-"}}, 2) {
				for _, e := range b.Events {
					got <- e
				}
				if err != nil {
					ended <- err
				}
			}
		}()
	}
	for range 6 {
		<-got
	}
	if _, err := db.Log().Append(ctx, "other", 0, happened(1)...); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Append(ctx, "tx-a", 3, happened(1)...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if e := <-got; e.Version != 4 || e.Position != 5 {
			t.Errorf("version %d at %d", e.Version, e.Position)
		}
	}
	if head, err := second.Head(ctx); head != 5 || err != nil {
		t.Errorf("the head is %d, %v", head, err)
	}
	var theirs, ours []eventlog.Recorded
	for e, err := range first.ReadStream(ctx, "tx-a", 1) {
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, e)
	}
	for e, err := range db.Log().ReadStream(ctx, "tx-a", 1) {
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, e)
	}
	if diff := cmp.Diff(ours, theirs); diff != "" || len(ours) != 3 {
		t.Error(diff)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// Events dropped by the archiver are not skipped, with either way of reading: a consumer that
// has not seen them gets an error.
func TestFeedBehindTheArchive(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	db := open(t, dir, embedded.Options{})
	for _, stream := range []eventlog.Stream{"s1", "s2", "s3", "other", "another"} {
		if _, err := db.Log().Append(ctx, stream, 0, happened(1)...); err != nil {
			t.Fatal(err)
		}
	}
	f := openFeed(t, dir, embedded.FeedOptions{})
	if err := db.Log().KeepSegment(ctx, archive.Segment{First: 1, Past: 4, Name: "some"}); err != nil {
		t.Fatal(err)
	}
	subscribed := 0
	for b, err := range f.Subscribe(ctx, 0, eventlog.Filter{}, 1) {
		if subscribed++; subscribed > 1 { // dropped while the consumer processed the first event
			if gone := new(archive.GoneError); !errors.As(err, &gone) || gone.Begins != 4 {
				t.Fatalf("subscribed, it was given %v, %v", b, err)
			}
			break
		}
		if err != nil || len(b.Events) != 1 {
			t.Fatal(b, err)
		}
		if _, err := db.Log().Drop(ctx, 4, archive.Rule{{Prefix: "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range f.ReadAll(ctx, 2, eventlog.Filter{}, 10) {
		if gone := new(archive.GoneError); !errors.As(err, &gone) {
			t.Errorf("read: %v", err)
		}
	}
}

// A reader that continues a settled stream also gets an error for its dropped events.
func TestFeedOfAnArchivedStream(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	db := open(t, dir, embedded.Options{})
	if _, err := db.Log().Append(ctx, "s", 0, happened(3)...); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Append(ctx, "other", 0, happened(1)...); err != nil {
		t.Fatal(err)
	}
	f := openFeed(t, dir, embedded.FeedOptions{})
	if err := db.Log().KeepSegment(ctx, archive.Segment{First: 1, Past: 4, Name: "some"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Drop(ctx, 4, archive.Rule{{Prefix: "s"}}); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, err := range f.ReadStream(ctx, "s", 1) {
		if gone := new(archive.GoneError); errors.As(err, &gone) && gone.Stream == "s" {
			told++
		}
	}
	if told != 1 {
		t.Error("a parked stream would have gone on without what is in the archive")
	}
	for _, err := range f.ReadStream(ctx, "s", 3) {
		t.Errorf("after its last event: %v", err)
	}
}

func TestFeedOfNothing(t *testing.T) {
	if f, err := embedded.OpenFeed(t.TempDir(), embedded.FeedOptions{}); err == nil {
		t.Error("there is no log, and it was opened", f.Close())
	}
}

func happened(n int) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		rand.Read(events[i].ID[:])
		events[i].Name, events[i].Data = "test.happened.v1", []byte(`{}`)
	}
	return events
}
