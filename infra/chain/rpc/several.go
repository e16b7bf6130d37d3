package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Some answers are estimates in which honest endpoints differ. Several endpoints are asked for
// them, and the median counts.
const (
	severalAsked  = 4 // asked at once; one of them may hang
	severalEnough = 3 // answers needed: with three, a single lie is never the median
)

// several asks the reader's endpoint and some other healthy ones at once. It returns the
// answers when enough have come, or all that came in time. It fails if they are fewer than
// Agree requires; if no other has answered for a while, one is enough.
func several[T any](ctx context.Context, p *Pool, about subject, ask func(ctx context.Context, e *endpoint) (T, error)) ([]T, error) {
	first := p.reader()
	asked := append([]*endpoint{first}, p.witnesses(first)...)
	asked = asked[:min(len(asked), severalAsked)]
	need := min(p.config.Agree, len(asked))
	if missed, seen := p.missed(first); need < min(p.config.Agree, len(asked)+missed) && p.aloneFor(ctx, about) < about.patience(seen) {
		return nil, &Unreachable{Endpoint: first.name, Err: fmt.Errorf("%s: %w (%d are healthy, %d are not)", about, errAlone, len(asked), missed)}
	}
	answers, failed := collect(ctx, p, asked, ask)
	switch {
	case len(answers) == 0:
		return nil, failed
	case len(answers) < need:
		return nil, &Unreachable{Endpoint: first.name, Err: fmt.Errorf("%s: %w (%d of %d have answered)", about, errAlone, len(answers), len(asked))}
	case len(answers) > 1:
		p.heardOf(ctx, about)
	}
	return answers, nil
}

// collect asks endpoints at once and waits for enough answers. failed is one endpoint's error,
// if any gave none.
func collect[T any](ctx context.Context, p *Pool, asked []*endpoint, ask func(ctx context.Context, e *endpoint) (T, error)) (answers []T, failed error) {
	type outcome struct {
		value T
		err   error
	}
	outcomes := make(chan outcome, len(asked))
	for _, e := range asked {
		own, end := p.outlive(ctx)
		p.running.Go(func() {
			defer end()
			value, err := ask(own, e)
			outcomes <- outcome{value, err}
		})
	}
	late := time.NewTimer(p.config.HeadTimeout)
	defer late.Stop()
	for range asked {
		select {
		case <-ctx.Done():
			return nil, &Unreachable{Endpoint: asked[0].name, Err: ctx.Err()}
		case <-late.C:
			return answers, cmp.Or[error](failed, &Unreachable{Endpoint: asked[0].name, Err: context.DeadlineExceeded})
		case got := <-outcomes:
			if got.err != nil {
				failed = cmp.Or(failed, got.err)
				continue
			}
			if answers = append(answers, got.value); len(answers) == severalEnough {
				return answers, nil
			}
		}
	}
	return answers, failed
}

// middle is the median, the lower of two. With three or more values, a single lie cannot move
// it beyond the other values.
func middle[T any](values []T, compare func(a, b T) int) T {
	slices.SortFunc(values, compare)
	return values[(len(values)-1)/2]
}
