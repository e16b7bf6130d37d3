package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// eventsMax is the most events in one answer.
const eventsMax = 1000

// trail is the answer to GET /v1/transactions/{hash}/events, oldest first.
type trail struct {
	ChainID chain.ID        `json:"chainId"`
	TxHash  chain.Hash      `json:"txHash"`
	Events  []recordedEvent `json:"events"`
	// NextCursor continues the list; empty on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
	HasMore    bool   `json:"hasMore"`
}

// recordedEvent is an event as stored in the log.
type recordedEvent struct {
	ID   eventlog.ID `json:"id"`
	Name string      `json:"name"`
	// Version is 0 in an event of a group for a client that sees only some of the members.
	Version  eventlog.Version  `json:"version,omitempty"`
	Position eventlog.Position `json:"position"`
	At       string            `json:"at"` // RFC 3339, UTC, by the store's clock
	Data     json.RawMessage   `json:"data"`
	Meta     eventlog.Meta     `json:"meta"`
}

// events answers GET /v1/transactions/{hash}/events. With after, it returns only events after
// that version.
func (a *api) events(r rest.Request) error {
	hash, id, q, err := named(r, "chainId", "after", "cursor")
	if err != nil {
		return err
	}
	v := a.viewer(r)
	list := "events of " + hash.String() + v.list()
	after, err := r.ReadAfter(q.values, "a version", list)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	if id, err = a.locate(ctx, id, hash); err != nil {
		return err
	}
	whose, err := a.ownership(ctx, tx.Stream(id, hash), 0)
	if err != nil {
		return err
	}
	out := trail{ChainID: id, TxHash: hash, Events: []recordedEvent{}}
	for recorded, err := range a.stream(ctx, tx.Stream(id, hash), v.recorded(whose, eventlog.Version(after))) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if out.HasMore = len(out.Events) == eventsMax; out.HasMore {
			break
		}
		recorded, told, err := a.told(v, whose, recorded)
		if err != nil {
			return err
		}
		if told {
			out.Events = append(out.Events, recordedOf(recorded))
		}
	}
	if out.HasMore {
		last := out.Events[eventsMax-1].Version
		out.NextCursor = r.Cursor(eventlog.Position(last), list)
		r.Answering().Set("Link", fmt.Sprintf(`</v1/transactions/%s/events?chainId=%s&after=%d>; rel="next"`, hash, id, last))
	}
	return r.ReplyRead(http.StatusOK, out)
}

// locate finds the chain that has a transaction's stream. It reads the log as well as the read
// model, because a retired transaction has no row but keeps its events.
func (a *api) locate(ctx context.Context, id chain.ID, hash chain.Hash) (chain.ID, error) {
	if id == 0 {
		rows, err := a.Query.Find(ctx, 0, hash)
		if err != nil {
			return 0, err
		}
		if len(rows) > 0 {
			return rows[0].State.Accepted.Chain, nil
		}
	}
	for _, id := range a.candidates(id) {
		for _, err := range a.stream(ctx, tx.Stream(id, hash), 0) {
			return id, err
		}
	}
	return 0, tx.ErrUnknown
}

func recordedOf(r eventlog.Recorded) recordedEvent {
	return recordedEvent{r.ID, r.Name, r.Version, r.Position, r.At.UTC().Format(time.RFC3339Nano), r.Data, r.Meta}
}
