package tail

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Until calls look, at once and whenever something may have been added to a stream, until
// look says that it has seen enough. The errors are those of [Tail.Await], and look's,
// which ends it.
func (t *Tail) Until(ctx context.Context, stream event.Stream, look func(ctx context.Context) (enough bool, err error)) error {
	// Waiting begins before looking, so that nothing falls between the two.
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
