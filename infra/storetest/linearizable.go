package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/storetest/linear"
)

// Crowd is how many clients make a history, and how much each of them asks.
type Crowd struct {
	Clients, Calls int
	Seed           uint64
	// Again is set for an adapter that tries again by itself when a reply is lost, and
	// waits at least so long before it does.
	Again time.Duration
	// Enough, when set, has the clients go on until it says yes, within reason.
	Enough func() bool
}

// beyondReason is how many times its calls a crowd makes at most while it is not enough.
const beyondReason = 20

// SmallCrowd makes a history in about a second, where nothing is in its way.
func SmallCrowd(seed uint64) Crowd { return Crowd{Clients: 12, Calls: 60, Seed: seed} }

// together runs the clients, each with a source of chance of its own, until all have
// ended or ctx has.
func (c Crowd) together(ctx context.Context, client func(n int, draw *rand.Rand, more func() bool)) {
	var all sync.WaitGroup
	for n := range c.Clients {
		all.Go(func() {
			calls := 0
			client(n, rand.New(rand.NewPCG(c.Seed, uint64(n))), func() bool {
				calls++
				wanted := calls <= c.Calls || c.Enough != nil && calls <= beyondReason*c.Calls && !c.Enough()
				return wanted && ctx.Err() == nil
			})
		})
	}
	all.Wait()
}

// judged fails a test whose history is wrong, and leaves a picture of it.
func judged(t *testing.T, v linear.Verdict) {
	t.Helper()
	if v.Wrong == "" {
		return
	}
	path := filepath.Join(t.ArtifactDir(), "history.html")
	picture, err := os.Create(path)
	check(t, err)
	defer picture.Close() //nolint:errcheck // Draw tells
	check(t, v.Draw(picture))
	t.Errorf("not linearizable: %s; drawn in %s, which go test -artifacts keeps", v.Wrong, path)
}

// linearStreams is the case of the contract: a history without trouble.
func linearStreams(t *testing.T, o Opened[Log]) {
	LinearStreams(t, o.Port, SmallCrowd(1))
}

// LinearStreams has clients append to a few streams and read them: at the version they
// know and at others, again under the same ids, and with contexts that end too soon.
// What they were told must be what one stream after the other would have told.
func LinearStreams(t *testing.T, s Log, c Crowd) {
	t.Helper()
	h := AskStreams(soon(t), s, c)
	all, open := h.Len()
	t.Logf("%d calls, %d of unknown outcome; of the appends %d stand, %d of them repeated, %d conflicted, %d failed",
		all, open, h.Told(linear.Stood), h.Repeats(), h.Told(linear.Conflicted), h.Told(linear.Failed))
	if h.Told(linear.Stood) < all/10 || h.Told(linear.Conflicted) == 0 || h.Repeats() == 0 {
		t.Error("too little happened for a verdict")
	}
	judged(t, h.Judge())
}

// Clients go on to other streams all the time: after so many calls of theirs to the next
// one, out of so many at once. A long stream is slow to judge.
const (
	streamsEach   = 40
	streamsAtOnce = 5
)

// AskStreams makes the history of [LinearStreams] and leaves the judging to the caller.
func AskStreams(ctx context.Context, s Log, c Crowd) linear.Streams {
	h := linear.NewStreams()
	c.together(ctx, func(n int, draw *rand.Rand, more func() bool) {
		w := &writer{Log: s, history: h, client: n, draw: draw, at: map[event.Stream]event.Version{}, last: map[event.Stream]linear.Append{}}
		for asked := 0; more(); asked++ {
			first := asked * c.Clients / streamsEach
			w.turn(ctx, event.Stream(fmt.Sprintf("s-%d-%d", c.Seed, first+draw.IntN(streamsAtOnce))))
		}
	})
	last := &writer{Log: s, history: h, client: c.Clients, at: map[event.Stream]event.Version{}}
	for _, name := range h.Names() {
		for ctx.Err() == nil && !last.read(ctx, name) {
		}
	}
	return h
}

// writer is a client of the log.
type writer struct {
	Log
	history linear.Streams
	client  int
	draw    *rand.Rand
	at      map[event.Stream]event.Version
	last    map[event.Stream]linear.Append // that stands
}

// turn does one of the things that clients do.
func (w *writer) turn(ctx context.Context, name event.Stream) {
	a := linear.Append{Stream: name, Expected: w.at[name]}
	switch dice := w.draw.IntN(10); {
	case dice < 2:
		w.read(ctx, name)
		return
	case dice == 2 && len(w.last[name].IDs) > 0: // as one does who missed the answer
		w.ask(ctx, w.last[name])
		return
	case dice == 3 && a.Expected > 0:
		a.Expected--
	case dice == 4:
		a.Expected += event.Version(1 + w.draw.IntN(2))
	}
	for range 1 + w.draw.IntN(3) {
		a.IDs = append(a.IDs, freshID())
	}
	// Who does not know asks again, with the same ids.
	for range 4 {
		short, cancel := ctx, context.CancelFunc(func() {})
		if w.draw.IntN(4) == 0 {
			short, cancel = context.WithTimeout(ctx, time.Duration(w.draw.IntN(3000))*time.Microsecond)
		}
		out := w.ask(short, a)
		cancel()
		if out.Outcome == linear.Stood {
			w.last[name] = a
		}
		if out.Outcome == linear.Stood || out.Outcome == linear.Conflicted || ctx.Err() != nil {
			w.at[name] = out.Version
			return
		}
	}
}

func (w *writer) ask(ctx context.Context, a linear.Append) linear.Appended {
	events := make([]event.Event, len(a.IDs))
	for i, id := range a.IDs {
		events[i] = event.Event{ID: id, Name: "test.happened.v1", Data: []byte(`{}`)}
	}
	return w.history.Do(w.client, a, func() (linear.Appended, bool) {
		got, err := w.Append(ctx, a.Stream, a.Expected, events...)
		var conflict *event.ConflictError
		switch {
		case err == nil:
			return linear.Appended{Outcome: linear.Stood, Version: got.Version, Position: got.Position, Repeated: got.Repeated}, true
		case errors.As(err, &conflict):
			return linear.Appended{Outcome: linear.Conflicted, Version: conflict.Actual}, true
		case errors.Is(err, event.ErrUnknown):
			return linear.Appended{Outcome: linear.Unsure}, false
		}
		return linear.Appended{Outcome: linear.Failed}, true
	})
}

// read says whether it could be.
func (w *writer) read(ctx context.Context, name event.Stream) bool {
	out := w.history.Do(w.client, linear.Append{Stream: name}, func() (linear.Appended, bool) {
		seen := linear.Appended{Outcome: linear.Seen}
		for r, err := range w.ReadStream(ctx, name, 0) {
			if err != nil {
				return linear.Appended{Outcome: linear.Failed}, true
			}
			seen.Seen = append(seen.Seen, r.ID)
			seen.Version, seen.Position = r.Version, r.Position
		}
		return seen, true
	})
	if out.Outcome == linear.Seen {
		w.at[name] = out.Version
	}
	return out.Outcome == linear.Seen
}
