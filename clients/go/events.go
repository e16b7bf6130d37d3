package watchtower

import (
	"context"
	"encoding/json"
	"iter"
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
	// Transaction is the transaction's state right after the event, with [EventFilter.WithState].
	Transaction *TransactionState `json:"transaction,omitempty"`
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
	// WithState adds [Event.Transaction] to events of transactions.
	WithState bool
	// Until is the last position that is wanted. UntilHead stops at the end of the log as of
	// the start of the stream. Without either, the stream never ends.
	Until     *uint64
	UntilHead bool
}

// Events yields events as they are recorded. It ends after all requested events, when the
// service refuses, or when ctx ends; then the error is the last value that it yields. After a
// lost connection it resumes where it was, without missing or repeating events.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return follow(ctx, c.caller(), f.After, f.query, func(line []byte) (e Event, isEvent bool, err error) {
		err = json.Unmarshal(line, &e)
		return e, e.Name != "", err // a mark has no name
	})
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
	if f.WithState {
		query.Set("include", "transaction")
	}
	return between(query, at, f.Until, f.UntilHead)
}

// Trail yields the recorded events of one transaction, oldest first.
func (c *Client) Trail(ctx context.Context, hash string) iter.Seq2[Event, error] {
	return pages(after(0), func(query url.Values) (events []Event, next url.Values, err error) {
		var page struct {
			ChainID uint64
			TxHash  string
			Events  []Event
			HasMore bool
		}
		if err := c.call(ctx, get(pathOf(hash)+"/events", query), &page); err != nil {
			return nil, nil, err
		}
		for i := range page.Events {
			page.Events[i].ChainID, page.Events[i].TxHash = page.ChainID, page.TxHash
		}
		if n := len(page.Events); n > 0 && page.HasMore {
			next = after(page.Events[n-1].Version)
		}
		return page.Events, next, nil
	})
}

func after(n uint64) url.Values { return url.Values{"after": {strconv.FormatUint(n, 10)}} }
