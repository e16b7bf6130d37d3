package tail

import (
	"context"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Until calls look, at once and whenever a stream may have grown, until look returns
// enough. Its errors are the errors of [Tail.Await], and look's error, which ends it.
func (t *Tail) Until(ctx context.Context, stream eventlog.Stream, look func(ctx context.Context) (enough bool, err error)) error {
	// Waiting begins before looking, so that no event between the two is missed.
	woken, leave, full := t.join(stream)
	defer leave()
	for {
		switch enough, err := look(ctx); {
		case err != nil || enough:
			return err
		case full != nil:
			return full
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
