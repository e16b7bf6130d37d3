package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// lately shares one reading among callers that are content with an answer of some age. Callers at
// the same time share one question, and an error counts as an answer. The zero value is ready.
type lately[T any] struct {
	chorus chorus[T]

	mu    sync.Mutex
	asked time.Time // zero: never
	value T
	err   error
}

// get returns the last answer if it was asked for at most age before now, else ask's.
func (l *lately[T]) get(ctx context.Context, now func() time.Time, age time.Duration, ask func(context.Context) (T, error)) (T, error) {
	if value, fresh, err := l.known(now(), age); fresh {
		return value, err
	}
	return l.chorus.do(ctx, func(ctx context.Context) (T, error) {
		if value, fresh, err := l.known(now(), age); fresh {
			return value, err
		}
		asked := now()
		value, err := ask(ctx)
		if err == nil || ctx.Err() == nil {
			l.saw(asked, value, err)
		}
		return value, err
	})
}

func (l *lately[T]) known(now time.Time, age time.Duration) (value T, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	past := now.Sub(l.asked)
	return l.value, !l.asked.IsZero() && past >= 0 && past <= age, l.err
}

// saw records the answer to a question, unless a later question was answered before.
func (l *lately[T]) saw(asked time.Time, value T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !asked.Before(l.asked) {
		l.asked, l.value, l.err = asked, value, err
	}
}

// Latest is [Reader.Newest] for callers that are content with a block that was the newest at most
// age ago. All readers of the pool share it: however many callers there are, the nodes are asked
// once in that time, and not at all if a caller of Newest has asked them.
func (r *Reader) Latest(ctx context.Context, age time.Duration) (chain.Block, error) {
	return r.pool.newest.get(ctx, r.pool.config.Now, age, r.Newest)
}

// LatestFinal returns the newest final block, agreed on by a quorum of endpoints, as of at most age
// ago. All callers share one reading.
func (r *Reader) LatestFinal(ctx context.Context, age time.Duration) (chain.Block, error) {
	return r.pool.finals.get(ctx, r.pool.config.Now, age, func(ctx context.Context) (chain.Block, error) {
		at, err := r.Latest(ctx, age)
		if err == nil {
			at, err = r.Final(ctx, at)
		}
		if err == nil {
			err = r.ShownFinal(ctx, at)
		}
		return at, err
	})
}

// AgreedNonce is [Reader.AgreedNonce].
func (c *ClientReader) AgreedNonce(ctx context.Context, at chain.Block, s chain.Sequence) (AgreedNonce, error) {
	return placed(ctx, c, func(ctx context.Context) (AgreedNonce, error) { return c.reader.AgreedNonce(ctx, at, s) })
}
