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

// Event is one recorded event.
type Event struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`     // such as tx.mined.v1
	Version  uint64          `json:"version"`  // within its stream, from 1; 0: of a group of which the client sees only its own members
	Position uint64          `json:"position"` // within the whole log
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
	Stream   string          `json:"stream"`
	ChainID  uint64          `json:"chainId"`
	TxHash   string          `json:"txHash,omitempty"`  // for an event of a transaction
	Sender   string          `json:"sender,omitempty"`  // for an event of a group
	GroupID  string          `json:"groupId,omitempty"` // for an event of a group
	Meta     Meta            `json:"meta"`
}

// Meta is the origin of an event.
type Meta struct {
	Correlation string `json:"correlation,omitempty"` // the id of the request or event at the start of the chain of causes
	Causation   string `json:"causation,omitempty"`   // the id of the event that caused this one
	Actor       string `json:"actor,omitempty"`       // the cause of the event: api, broadcaster, watcher, …
	Trace       string `json:"trace,omitempty"`       // the W3C traceparent of the request or attempt
	Link        string `json:"link,omitempty"`        // hash link to the previous event of the stream, 64 hex digits; only for the scope audit
}

// EventFilter selects the events that match all fields that are set.
type EventFilter struct {
	// After is the position after which events are wanted: the position of the last handled
	// event, or 0 for all events. Nil starts at the end of the log.
	After   *uint64
	ChainID uint64
	Sender  string // the sender in the transaction's acceptance, for all its events
	GroupID string // the group in the transaction's acceptance, for all its events
	TxHash  string
	Name    string // prefix of the name, such as tx.mined; several are separated by commas
	Stream  string // prefix of the stream's name
	// Until is the last position that is wanted. UntilHead stops at the end of the log as of
	// the start of the stream. Without either, the stream never ends.
	Until     *uint64
	UntilHead bool
}

// silenceMost is the silence after which a stream counts as dead. The service writes at least
// every 15 seconds.
const silenceMost = 60 * time.Second

// Events yields events as they are recorded. It ends after all requested events, when the
// service refuses, or when ctx ends; then the error is the last value that it yields. After a
// lost connection it resumes where it was, without missing or repeating events.
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
			_ = pause(ctx, max(rest, backoff(try))) // the loop checks ctx next
		}
	}
}

// errEnough means that the caller stopped the iteration, or that all requested events were
// yielded.
var errEnough = errors.New("enough")

// follow reads one stream until it ends, and advances at. rest is the wait that the service
// demands before the next request.
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
			return 0, &misuse{fmt.Errorf("decode the event: %w", err)}
		}
		if e.End {
			return 0, errEnough
		}
		if e.Name != "" && !yield(e.Event, nil) { // otherwise it is a mark
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

// Trail yields the recorded events of one transaction, oldest first.
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
