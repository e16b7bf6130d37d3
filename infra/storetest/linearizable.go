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

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/storetest/linear"
)

// Crowd is the number of clients that make a history, and of each client's calls.
type Crowd struct {
	Clients, Calls int
	Seed           uint64
	// Again is set for an adapter that retries by itself when a reply is lost. It is the least
	// time that the adapter waits before it.
	Again time.Duration
	// Enough, if set, keeps the clients running until it returns true, up to beyondReason.
	Enough func() bool
}

// beyondReason is the factor on Calls that bounds a crowd with Enough.
const beyondReason = 20

// SmallCrowd makes a history in about a second without faults.
func SmallCrowd(seed uint64) Crowd { return Crowd{Clients: 12, Calls: 60, Seed: seed} }

// together runs the clients, each with its own random source, until all have ended or ctx has.
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

// judged fails a test whose history is wrong, and saves a picture of it.
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

// linearStreams is the contract's case: a history without faults.
func linearStreams(t *testing.T, o Opened[Log]) {
	LinearStreams(t, o.Port, SmallCrowd(1))
}

// LinearStreams runs clients that append to a few streams and read them: at the version they
// know and at others, again under the same ids, and with contexts that end too soon. Their
// results must be linearizable: a store that runs one call after the other would return the
// same.
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

// Clients move on to other streams: each to the next one after a number of calls, with a number
// of streams in use at once. Long streams are slow to judge.
const (
	streamsEach   = 40
	streamsAtOnce = 5
)

// AskStreams makes the history of [LinearStreams]; the caller judges it.
func AskStreams(ctx context.Context, s Log, c Crowd) linear.Streams {
	h := linear.NewStreams()
	c.together(ctx, func(n int, draw *rand.Rand, more func() bool) {
		w := &writer{Log: s, history: h, client: n, draw: draw, at: map[eventlog.Stream]eventlog.Version{}, last: map[eventlog.Stream]linear.Append{}}
		for asked := 0; more(); asked++ {
			first := asked * c.Clients / streamsEach
			w.turn(ctx, eventlog.Stream(fmt.Sprintf("s-%d-%d", c.Seed, first+draw.IntN(streamsAtOnce))))
		}
	})
	last := &writer{Log: s, history: h, client: c.Clients, at: map[eventlog.Stream]eventlog.Version{}}
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
	at      map[eventlog.Stream]eventlog.Version
	last    map[eventlog.Stream]linear.Append // the last append that was stored
}

// turn makes one random call.
func (w *writer) turn(ctx context.Context, name eventlog.Stream) {
	a := linear.Append{Stream: name, Expected: w.at[name]}
	switch dice := w.draw.IntN(10); {
	case dice < 2:
		w.read(ctx, name)
		return
	case dice == 2 && len(w.last[name].IDs) > 0: // like a client that missed the answer
		w.ask(ctx, w.last[name])
		return
	case dice == 3 && a.Expected > 0:
		a.Expected--
	case dice == 4:
		a.Expected += eventlog.Version(1 + w.draw.IntN(2))
	}
	for range 1 + w.draw.IntN(3) {
		a.IDs = append(a.IDs, freshID())
	}
	// If the outcome is unknown, the client retries with the same ids.
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
	events := make([]eventlog.Event, len(a.IDs))
	for i, id := range a.IDs {
		events[i] = eventlog.Event{ID: id, Name: "test.happened.v1", Data: []byte(`{}`)}
	}
	return w.history.Do(w.client, a, func() (linear.Appended, bool) {
		got, err := w.Append(ctx, a.Stream, a.Expected, events...)
		var conflict *eventlog.ConflictError
		switch {
		case err == nil:
			return linear.Appended{Outcome: linear.Stood, Version: got.Version, Position: got.Position, Repeated: got.Repeated}, true
		case errors.As(err, &conflict):
			return linear.Appended{Outcome: linear.Conflicted, Version: conflict.Actual}, true
		case errors.Is(err, eventlog.ErrUnknown):
			return linear.Appended{Outcome: linear.Unsure}, false
		}
		return linear.Appended{Outcome: linear.Failed}, true
	})
}

// read reads the stream and reports whether that succeeded.
func (w *writer) read(ctx context.Context, name eventlog.Stream) bool {
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
