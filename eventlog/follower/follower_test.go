package follower_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

// told returns a log of guests arriving at the given streams, and a follower of it.
func told(t *testing.T, streams ...eventlog.Stream) (*embedded.DB, follower.Follower) {
	t.Helper()
	db := embeddedtest.Open(t)
	at := map[eventlog.Stream]eventlog.Version{}
	for i, stream := range streams {
		came := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{}, i), Name: "came.v1", Data: fmt.Appendf(nil, `{"name":"%d"}`, i)}
		_, err := db.Log().Append(t.Context(), stream, at[stream], came)
		check(t, err)
		at[stream]++
	}
	return db, follower.Follower{Store: db.Log(), Checkpoints: db.Work(), Reader: "test", Max: 2}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkpoint returns the position of the follower's checkpoint.
func checkpoint(t *testing.T, f follower.Follower) eventlog.Position {
	t.Helper()
	at, err := f.Checkpoints.Checkpoint(context.Background(), f.Reader)
	check(t, err)
	return at
}

// watched counts the moves of a checkpoint and stops the follower once the checkpoint has
// reached until.
type watched struct {
	port.Checkpoints
	until eventlog.Position
	stop  context.CancelFunc
}

func (w watched) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	err := w.Checkpoints.MoveCheckpoint(ctx, reader, from, to)
	if err == nil && to >= w.until {
		w.stop()
	}
	return err
}

// follow runs a follower until its checkpoint has reached a position, and returns the
// positions it handled.
func follow(t *testing.T, f follower.Follower, until eventlog.Position) (seen []eventlog.Position) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f.Checkpoints = watched{f.Checkpoints, until, stop}
	err := f.Run(ctx, func(_ context.Context, events []eventlog.Recorded) error {
		if len(events) == 0 || len(events) > f.Max {
			t.Errorf("%d events in one go", len(events))
		}
		for _, e := range events {
			seen = append(seen, e.Position)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return seen
}

// Each event is handled in order, and a restarted follower resumes at its checkpoint.
func TestFollow(t *testing.T) {
	db, f := told(t, "a", "a", "b", "a", "b")
	if diff := cmp.Diff([]eventlog.Position{1, 2, 3, 4, 5}, follow(t, f, 5)); diff != "" {
		t.Error(diff)
	}
	late := eventlog.Event{ID: eventlog.DeriveID("b", eventlog.ID{}, 5), Name: "came.v1", Data: []byte(`{"name":"late"}`)}
	_, err := db.Log().Append(t.Context(), "b", 2, late)
	check(t, err)
	if diff := cmp.Diff([]eventlog.Position{6}, follow(t, f, 6)); diff != "" {
		t.Error(diff)
	}
}

// The checkpoint moves past filtered events, also at the end of the log.
func TestFollowMovesOverFilteredStretches(t *testing.T) {
	_, f := told(t, "a", "b", "b", "a", "b", "b")
	f.Filter = eventlog.Filter{Streams: []string{"a"}}
	if diff := cmp.Diff([]eventlog.Position{1, 4}, follow(t, f, 6)); diff != "" {
		t.Error(diff)
	}
	if at := checkpoint(t, f); at != 6 {
		t.Errorf("checkpoint at %d", at)
	}
}

// Events whose handling failed are handled again: the checkpoint never runs ahead.
func TestFollowRepeatsWhatFailed(t *testing.T) {
	_, f := told(t, "a", "a", "a")
	errTrouble := errors.New("trouble")
	var seen []eventlog.Position
	err := f.Run(t.Context(), func(_ context.Context, events []eventlog.Recorded) error {
		for _, e := range events {
			if seen = append(seen, e.Position); e.Position == 3 {
				return errTrouble
			}
		}
		return nil
	})
	if !errors.Is(err, errTrouble) || checkpoint(t, f) != 2 {
		t.Fatalf("ended with %v at %d", err, checkpoint(t, f))
	}
	if got := follow(t, f, 3); !slices.Equal(got, []eventlog.Position{3}) {
		t.Errorf("the next one handled %v", got)
	}
}

// Of two followers of the same name, the follower whose checkpoint was moved by the other
// stops.
func TestFollowStopsBehindAnother(t *testing.T) {
	db, f := told(t, "a", "a", "a")
	err := f.Run(t.Context(), func(ctx context.Context, events []eventlog.Recorded) error {
		return db.Work().MoveCheckpoint(ctx, f.Reader, 0, 3) // the other was faster
	})
	if !errors.Is(err, eventlog.ErrMoved) || checkpoint(t, f) != 3 {
		t.Errorf("ended with %v at %d", err, checkpoint(t, f))
	}
}

// A follower that cannot read an event handles the earlier events of the same batch, and
// stays before the event until it can read it.
func TestFollowStopsBeforeWhatItCannotRead(t *testing.T) {
	_, f := told(t, "a", "a", "b", "a", "b")
	f.Max = 5
	poison := eventlog.Position(4)
	var seen []eventlog.Position
	handle := func(_ context.Context, events []eventlog.Recorded) error {
		for _, e := range events {
			if e.Position == poison {
				return &eventlog.Stuck{At: e.Position, Err: errors.New("who wrote this?")}
			}
		}
		for _, e := range events {
			seen = append(seen, e.Position)
		}
		return nil
	}
	for range 3 {
		err := f.Run(t.Context(), handle)
		var stuck *eventlog.Stuck
		if !errors.As(err, &stuck) || stuck.At != 4 {
			t.Errorf("ended with %v", err)
		}
	}
	if diff := cmp.Diff([]eventlog.Position{1, 2, 3}, seen); diff != "" || checkpoint(t, f) != 3 {
		t.Errorf("stands at %d, having handled (want -, got +)\n%s", checkpoint(t, f), diff)
	}
	if diff := cmp.Diff([]eventlog.Position{4, 5}, follow(t, f, 5)); diff != "" {
		t.Error(diff)
	}
}
