package tail

import (
	"context"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Wait is one caller's wait. It is not safe for concurrent use.
type Wait struct {
	tail  *Tail
	woken chan struct{}
	// joined are the streams whose events wake the caller. Each value is the number of the first
	// read of the stream that began after the caller joined.
	joined map[eventlog.Stream]uint64
	full   error // why a stream could not be joined
}

// Until calls look, at once and whenever a stream may have grown that it has read by [Refresh],
// until look returns enough. Its errors are the errors of [Tail.Await], and look's error, which
// ends it.
func (t *Tail) Until(ctx context.Context, look func(ctx context.Context, w *Wait) (enough bool, err error)) error {
	w := &Wait{tail: t, woken: make(chan struct{}, 1), joined: map[eventlog.Stream]uint64{}}
	defer func() {
		for stream := range w.joined {
			t.part(stream, w.woken)
		}
	}()
	for {
		enough, err := look(ctx, w)
		switch {
		case err != nil || enough:
			return err
		case w.full != nil:
			return w.full
		}
		select {
		case <-w.woken:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.leaving:
			return ErrLeaving
		}
	}
}

// join has the stream's next events wake the caller. It reports false if there is no room.
func (w *Wait) join(stream eventlog.Stream) bool {
	if _, is := w.joined[stream]; is {
		return true
	}
	if w.full != nil {
		return false
	}
	first, err := w.tail.join(stream, w.woken)
	if err != nil {
		w.full = err
		return false
	}
	w.joined[stream] = first
	return true
}
