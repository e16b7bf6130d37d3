package watchtower

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// silenceMost is the silence after which a stream counts as dead. The services write at least
// every 15 seconds.
const silenceMost = 60 * time.Second

// errEnough means that the caller stopped the iteration, or that all requested events were
// yielded.
var errEnough = errors.New("enough")

// follow yields the events of /v1/events after a position, nil for the end of the log. query
// returns the parameters for the position that has been reached. read decodes a line; a line that
// is no event is a mark, up to which nothing is missing.
func follow[E any](ctx context.Context, c caller, at *uint64, query func(*uint64) url.Values, read func([]byte) (E, bool, error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		at := at
		for try := 1; ; try++ {
			before := at
			rest, err := stream(ctx, c, query(at), func(line []byte) error {
				e, isEvent, err := read(line)
				if err != nil {
					return &misuse{fmt.Errorf("decode the event: %w", err)}
				}
				if isEvent && !yield(e, nil) {
					return errEnough
				}
				return nil
			}, &at)
			if at != nil && (before == nil || *at != *before) {
				try = 1
			}
			switch {
			case errors.Is(err, errEnough):
				return
			case ctx.Err() != nil:
				yield(none, ctx.Err())
				return
			case !repeatable(err):
				yield(none, fmt.Errorf("watchtower: events: %w", err))
				return
			}
			_ = pause(ctx, max(rest, backoff(try))) // the loop checks ctx next
		}
	}
}

// stream reads one stream until it ends, hands each line to handle, and advances at. rest is the
// wait that the service demands before the next request.
func stream(ctx context.Context, c caller, query url.Values, handle func(line []byte) error, at **uint64) (rest time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMost, cancel)
	defer silence.Stop()
	res, err := c.send(ctx, request{
		method: http.MethodGet, path: "/v1/events", query: query, header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it is of no more use
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, answerMost))
		return retryAfter(res.Header), problemOf(res.StatusCode, body)
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		silence.Stop() // while the caller handles the event
		var mark struct {
			Position *uint64
			End      bool
		}
		switch err := json.Unmarshal(line, &mark); {
		case err != nil || mark.Position == nil:
			return 0, &misuse{fmt.Errorf("decode the event: %.100q", line)}
		case mark.End:
			return 0, errEnough
		}
		if err := handle(line); err != nil {
			return 0, err
		}
		*at = mark.Position
		silence.Reset(silenceMost)
	}
}
