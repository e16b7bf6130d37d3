package tail

import (
	"context"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Until calls look, at once and whenever a stream may have grown, until look returns
// enough. Its errors are the errors of [Tail.Await], and look's error, which ends it.
func (t *Tail) Until(ctx context.Context, stream eventlog.Stream, look func(ctx context.Context) (enough bool, err error)) error {
	return t.UntilAny(ctx, stream, func(ctx context.Context) (bool, []eventlog.Stream, error) {
		enough, err := look(ctx)
		return enough, nil, err
	})
}

// UntilAny is [Tail.Until] for a wait that depends on several streams. The first is known; look
// returns the streams on which its result depends besides, as far as it knows them.
func (t *Tail) UntilAny(ctx context.Context, first eventlog.Stream, look func(ctx context.Context) (enough bool, besides []eventlog.Stream, err error)) error {
	woken := make(chan struct{}, 1)
	joined := map[eventlog.Stream]bool{}
	var full error
	join := func(stream eventlog.Stream) {
		if full != nil || joined[stream] {
			return
		}
		if full = t.join(stream, woken); full == nil {
			joined[stream] = true
		}
	}
	defer func() {
		for stream := range joined {
			t.part(stream, woken)
		}
	}()
	join(first) // before looking, so that no event between the two is missed
	for {
		enough, besides, err := look(ctx)
		if err != nil || enough {
			return err
		}
		known := len(joined)
		for _, stream := range besides {
			join(stream)
		}
		switch {
		case full != nil:
			return full
		case len(joined) > known:
			continue // events of these streams may have come before the wait for them
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.leaving:
			return ErrLeaving
		}
	}
}
