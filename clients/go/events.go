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
	"strconv"
	"time"
)

// Event is one recorded fact.
type Event struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`     // such as tx.mined.v1
	Version  uint64          `json:"version"`  // within its stream, from 1
	Position uint64          `json:"position"` // within the whole log
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
	Stream   string          `json:"stream"`
	ChainID  uint64          `json:"chainId"`
	TxHash   string          `json:"txHash,omitempty"`  // of a transaction's event
	Sender   string          `json:"sender,omitempty"`  // of a group's event
	GroupID  string          `json:"groupId,omitempty"` // likewise
	Meta     Meta            `json:"meta"`
}

// Meta says where an event comes from.
type Meta struct {
	Correlation string `json:"correlation,omitempty"` // the id of the request or event that started it all
	Causation   string `json:"causation,omitempty"`   // the id of the event that led to this one
	Actor       string `json:"actor,omitempty"`       // who wished it: api, broadcaster, watcher, …
	Trace       string `json:"trace,omitempty"`       // the W3C traceparent of the request or attempt
	Link        string `json:"link,omitempty"`        // the event's link to the one before it in its stream, 64 hex digits
}

// EventFilter narrows a stream of events to what fits all that is set.
type EventFilter struct {
	// After is the position after which events are wanted: that of the last one
	// that was dealt with, or 0 for all there are. Nil is from now on.
	After   *uint64
	ChainID uint64
	Sender  string // a transaction's is the one it was accepted with, for all its events
	GroupID string // likewise
	TxHash  string
	Name    string // how the name begins: tx.mined, or several with commas between
	Stream  string // how the stream's name begins
	// Until is the last position that is wanted, and UntilHead says that it is the end of
	// the log as it is when the stream begins; what comes is over then. Without them
	// events are followed for ever.
	Until     *uint64
	UntilHead bool
}

// silenceMost is how long a stream may be silent before it counts as dead; the
// service breaks the silence every 15 seconds.
const silenceMost = 60 * time.Second

// Events yields events as they are recorded, until ctx ends, whose error is the last
// thing it yields, the service refuses, or all is there that was asked for. A stream that breaks off is taken
// up where it was: nothing is missed, and nothing comes twice.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		at := f.After
		for try := 1; ; try++ {
			before := at
			rest, err := c.follow(ctx, f, &at, yield)
			if at != nil && (before == nil || *at != *before) {
				try = 1
			}
			switch {
			case errors.Is(err, errEnough):
				return
			case ctx.Err() != nil:
				yield(Event{}, ctx.Err())
				return
			case !repeatable(err):
				yield(Event{}, fmt.Errorf("watchtower: events: %w", err))
				return
			}
			_ = pause(ctx, max(rest, backoff(try))) // its end shows above
		}
	}
}

// errEnough says that the one who ranges over events wants no more, or that there is
// no more of what was asked for.
var errEnough = errors.New("enough")

// follow reads one stream until it ends, and moves at along. rest is how long the
// service asks to be left alone.
func (c *Client) follow(ctx context.Context, f EventFilter, at **uint64, yield func(Event, error) bool) (rest time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMost, cancel)
	defer silence.Stop()
	res, err := c.send(ctx, request{
		method: http.MethodGet, path: "/v1/events", query: f.query(*at),
		header: http.Header{"Accept": {"application/x-ndjson"}},
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
		silence.Reset(silenceMost)
		var e struct {
			Event
			End bool `json:"end"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, &misuse{fmt.Errorf("what came is not understood: %w", err)}
		}
		if e.End {
			return 0, errEnough
		}
		if e.Name != "" && !yield(e.Event, nil) { // else it is a mark
			return 0, errEnough
		}
		*at = &e.Position
	}
}

func (f EventFilter) query(at *uint64) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"sender": f.Sender, "groupId": f.GroupID, "hash": f.TxHash, "name": f.Name, "stream": f.Stream,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.ChainID != 0 {
		query.Set("chainId", strconv.FormatUint(f.ChainID, 10))
	}
	if f.UntilHead {
		query.Set("until", "head")
	} else if f.Until != nil {
		query.Set("until", strconv.FormatUint(*f.Until, 10))
	}
	if at != nil {
		query.Set("after", strconv.FormatUint(*at, 10))
	}
	return query
}

// Trail yields the recorded events of one transaction, the oldest first.
func (c *Client) Trail(ctx context.Context, hash string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after := uint64(0)
		for {
			var page struct {
				ChainID uint64
				TxHash  string
				Events  []Event
				HasMore bool
			}
			r := request{
				method: http.MethodGet, path: pathOf(hash) + "/events",
				query: url.Values{"after": {strconv.FormatUint(after, 10)}},
			}
			if err := c.call(ctx, r, &page); err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page.Events {
				e.ChainID, e.TxHash = page.ChainID, page.TxHash
				after = e.Version
				if !yield(e, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
		}
	}
}
