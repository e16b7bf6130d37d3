package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// storage is a replica's access to the store.
type storage struct{ *replica }

// ports are the storage of a replica.
func (s storage) ports() app.Storage {
	return app.Storage{
		Log: s, Payloads: payloads{s}, Checkpoints: s, Leases: s, Queue: s, NextFree: s.NextFree, Usage: s.Usage, Soon: s.Soon,
		Board: s, Requests: requests{s}, View: s.view(),
		Ping: func(ctx context.Context) error { return s.call(ctx, reading, "ping", func() {}) },
		Transient: func(err error) bool {
			return errors.Is(err, errRefused) || errors.Is(err, errCut) || errors.Is(err, errCrashed)
		},
		Close: func(context.Context) error { return nil },
	}
}

// asked calls the store and returns its answer of type T.
func asked[T any](ctx context.Context, s storage, k kind, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var answer T
	var failed error
	err := s.call(ctx, k, name, func() { answer, failed = do(context.WithoutCancel(ctx)) })
	if err != nil {
		var none T // answer may yet be written to
		return none, err
	}
	return answer, failed
}

func told(ctx context.Context, s storage, name string, do func(ctx context.Context) error) error {
	_, err := asked(ctx, s, writing, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

func (s storage) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	name := fmt.Sprintf("append %s %d %s", stream, expected, events[0].Name)
	a, err := asked(ctx, s, writing, name, func(ctx context.Context) (eventlog.Appended, error) {
		a, err := s.world.store.Append(ctx, stream, expected, events...)
		switch {
		case err == nil && a.Repeated:
			s.world.some[appendedAgain]++
		case err == nil:
			s.world.appended(a, len(events))
			if stream == audit.Stream {
				s.world.judge.seals.by(s.replica)
			}
		case stream == audit.Stream && errors.As(err, new(*eventlog.ConflictError)):
			s.world.some[sealedBefore]++
		case strings.HasPrefix(string(stream), lane.StreamPrefix) && errors.As(err, new(*eventlog.ConflictError)):
			s.world.some[fenced]++
		}
		return a, err
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
	}
	return a, err
}

func (s storage) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		all, err := asked(ctx, s, reading, fmt.Sprintf("read %s %d", stream, after), func(ctx context.Context) (all []eventlog.Recorded, err error) {
			for r, err := range s.world.store.ReadStream(ctx, stream, after) {
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
			return all, nil
		})
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s storage) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	return asked(ctx, s, reading, fmt.Sprintf("version %s", stream), func(ctx context.Context) (eventlog.Version, error) {
		return s.world.store.Version(ctx, stream)
	})
}

func (s storage) page(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) (eventlog.Batch, error) {
	return asked(ctx, s, reading, fmt.Sprintf("read all %d %v", after, f), func(ctx context.Context) (eventlog.Batch, error) {
		b, _, err := s.world.store.Page(ctx, after, f, most)
		return b, err
	})
}

func (s storage) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return eventlog.Pages(after, func(after eventlog.Position) (eventlog.Batch, error) { return s.page(ctx, after, f, most) })
}

// Subscribe waits for the head to move, and notices late. It retries connection errors, as a
// store's client does.
func (s storage) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for first := true; ; first = false {
			var b eventlog.Batch
			var failed error
			grown := func() bool { return first || s.world.head() > after }
			err := s.callWhen(ctx, reading, fmt.Sprintf("subscribe %d %v", after, f), grown, func() {
				b, _, failed = s.world.store.Page(context.WithoutCancel(ctx), after, f, most)
			})
			switch {
			case ctx.Err() != nil:
				yield(eventlog.Batch{}, ctx.Err())
				return
			case errors.Is(err, errCrashed):
				yield(eventlog.Batch{}, err)
				return
			case err != nil:
				first = true
				continue
			case failed != nil:
				yield(eventlog.Batch{}, failed)
				return
			}
			if !yield(b, nil) {
				return
			}
			after = b.Next
		}
	}
}

func (s storage) Head(ctx context.Context) (eventlog.Position, error) {
	return asked(ctx, s, reading, "head", s.world.store.Head)
}

func (s storage) Checkpoint(ctx context.Context, reader string) (eventlog.Position, error) {
	return asked(ctx, s, reading, "checkpoint "+reader, func(ctx context.Context) (eventlog.Position, error) {
		return s.world.store.Checkpoint(ctx, reader)
	})
}

func (s storage) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	return told(ctx, s, fmt.Sprintf("move %s %d %d", reader, from, to), func(ctx context.Context) error {
		return s.world.store.MoveCheckpoint(ctx, reader, from, to)
	})
}

func (s storage) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	return asked(ctx, s, writing, "lease "+name, func(ctx context.Context) (held bool, err error) {
		if held, err = s.world.store.Acquire(ctx, name, holder, ttl); held {
			s.world.leased(s.replica, name)
		}
		return held, err
	})
}

func (s storage) Release(ctx context.Context, name, holder string) error {
	return told(ctx, s, "release "+name, func(ctx context.Context) error { return s.world.store.Release(ctx, name, holder) })
}

func (s storage) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	return told(ctx, s, fmt.Sprintf("apply %s %d %d", reader, from, to), func(ctx context.Context) error {
		return s.world.store.Apply(ctx, reader, from, to, changes)
	})
}

func (s storage) Unfilled(ctx context.Context, after tx.Ref, limit int) ([]tx.Ref, error) {
	return asked(ctx, s, reading, fmt.Sprintf("unfilled %s %d", after.Hash, limit), func(ctx context.Context) ([]tx.Ref, error) {
		return s.world.store.Unfilled(ctx, after, limit)
	})
}

func (s storage) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) ([]tx.Work, time.Duration, error) {
	type answer struct {
		work  []tx.Work
		until time.Duration
	}
	a, err := asked(ctx, s, writing, fmt.Sprintf("lease work %s %d %d", id, limit, repeats), func(ctx context.Context) (a answer, err error) {
		s.replica.behind = s.world.storeSkew - time.Duration(s.replica.skew.Load())
		a.work, a.until, err = s.world.store.Lease(ctx, id, holder, ttl, limit, repeats)
		return a, err
	})
	return a.work, a.until, err
}

func (s storage) Done(ctx context.Context, holder string, done []tx.Done) error {
	return told(ctx, s, fmt.Sprintf("done %s %d", done[0].Hash, len(done)), func(ctx context.Context) error {
		carried := slices.Clone(done)
		for i := range carried {
			if s.replica.behind.Abs() >= skewMin {
				carried[i].NextAt = carried[i].NextAt.Add(s.replica.behind)
			}
		}
		return s.world.store.Done(ctx, holder, carried)
	})
}

// skewMin is the difference of two clocks from which a store converts times.
const skewMin = 250 * time.Millisecond

// payloads is a replica's access to the signed bytes.
type payloads struct{ storage }

func (p payloads) Put(ctx context.Context, rows []payload.Sealed) error {
	if len(rows) == 0 {
		return nil
	}
	return told(ctx, p.storage, fmt.Sprintf("put payload %s %d", rows[0].Hash, len(rows)), func(ctx context.Context) error {
		return p.world.store.Payloads().Put(ctx, rows)
	})
}

func (p payloads) Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error) {
	return asked(ctx, p.storage, reading, "get payload "+hash.String(), func(ctx context.Context) (payload.Sealed, error) {
		return p.world.store.Payloads().Get(ctx, id, hash)
	})
}

func (p payloads) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	if len(hashes) == 0 {
		return nil
	}
	return told(ctx, p.storage, fmt.Sprintf("erase payload %s %d", hashes[0], len(hashes)), func(ctx context.Context) error {
		return p.world.store.Payloads().Erase(ctx, id, hashes)
	})
}

func (p payloads) EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error {
	return told(ctx, p.storage, "erase orphan "+ref.Hash.String(), func(ctx context.Context) error {
		return p.world.store.Payloads().EraseOrphan(ctx, ref, before)
	})
}

func (p payloads) Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) ([]payload.Ref, error) {
	return asked(ctx, p.storage, reading, "orphans "+after.Hash.String(), func(ctx context.Context) ([]payload.Ref, error) {
		return p.world.store.Payloads().Orphans(ctx, before, after, limit)
	})
}

// requests is a replica's access to remembered requests.
type requests struct{ storage }

func (r requests) Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error) {
	type answer struct {
		stage  request.Stage
		answer request.Answer
	}
	a, err := asked(ctx, r.storage, writing, fmt.Sprintf("claim %x", c.Name), func(ctx context.Context) (a answer, err error) {
		a.stage, a.answer, err = r.world.store.Requests().Claim(ctx, c)
		return a, err
	})
	return a.stage, a.answer, err
}

func (r requests) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	return told(ctx, r.storage, fmt.Sprintf("answer %x", name), func(ctx context.Context) error {
		return r.world.store.Requests().Answer(ctx, name, claim, a)
	})
}

func (r requests) Release(ctx context.Context, name request.Name, claim eventlog.ID) error {
	return told(ctx, r.storage, fmt.Sprintf("release claim %x", name), func(ctx context.Context) error {
		return r.world.store.Requests().Release(ctx, name, claim)
	})
}

func (r requests) Usage(ctx context.Context, share int) (request.Usage, error) {
	return asked(ctx, r.storage, reading, "count requests", func(ctx context.Context) (request.Usage, error) {
		return r.world.store.Requests().Usage(ctx, share)
	})
}

func (r requests) Forget(ctx context.Context, o request.Oldest) (int, error) {
	return asked(ctx, r.storage, writing, "forget requests", func(ctx context.Context) (int, error) {
		return r.world.store.Requests().Forget(ctx, o)
	})
}
