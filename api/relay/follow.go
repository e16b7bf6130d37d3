package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// told is an event of an intent in the form of a webhook delivery, with its position in the
// log.
type told struct {
	Position event.Position  `json:"position"`
	Intent   chain.IntentID  `json:"intent"`
	Sequence uint64          `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
}

// follow answers GET /v1/events. It streams the events that webhooks receive, as they happen,
// for all intents that the client may see.
func (d *desk) follow(r api.Request) error {
	q, err := r.Query("intent", "client", "after", "until")
	if err != nil {
		return err
	}
	s := api.Stream{Tail: d.Tail, Head: d.Intake.Intents.Store.Head}
	if s.Span, err = r.Span(q); err != nil {
		return err
	}
	client, err := d.seen(r, q)
	if err != nil {
		return err
	}
	if s.Stored, err = wantedStream(q); err != nil {
		return err
	}
	if q.Has("intent") && client != nil {
		s.Names = api.NamesOne
		s.Reaches = func(ctx context.Context) (bool, error) {
			owner, known, err := d.owner(ctx, event.Stream(s.Stored.Streams[0]))
			return known && owner == *client, err
		}
	}
	s.Show = func(ctx context.Context, e event.Recorded) (any, error) {
		if !s.Stored.Passes(e.Stream, e.Name) {
			return nil, nil
		}
		return d.told(ctx, client, e)
	}
	return r.Stream(s)
}

func wantedStream(q url.Values) (event.Filter, error) {
	if !q.Has("intent") {
		return event.Filter{Streams: []string{intent.StreamPrefix}}, nil
	}
	id, err := chain.ParseIntentID(q.Get("intent"))
	if err != nil {
		return event.Filter{}, api.ErrInvalidFilter.Because("intent: %v", err)
	}
	return event.Filter{Streams: []string{string(stream(id))}}, nil
}

// told returns an event as shown to a client; nil if the event is not public or another
// client's. A nil client sees every client's events.
func (d *desk) told(ctx context.Context, client *string, r event.Recorded) (any, error) {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return nil, err
	}
	e, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data)
	if err != nil {
		return nil, err
	}
	said, is := intent.Tell(id, e)
	if !is {
		return nil, nil
	}
	if client != nil {
		owner, known, err := d.owner(ctx, r.Stream)
		switch {
		case err != nil:
			return nil, err
		case !known:
			return nil, fmt.Errorf("%s has no first event", r.Stream)
		case owner != *client:
			return nil, nil
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	shown := told{}
	if err := json.Unmarshal(text, &shown); err != nil {
		return nil, err
	}
	shown.Position = r.Position
	return shown, nil
}

// owner returns the client that owns the intent of a stream, if the stream exists. The stream's
// first event names the owner, and it never changes.
func (d *desk) owner(ctx context.Context, stream event.Stream) (client string, known bool, err error) {
	if client, known := d.owners.Recall(stream); known {
		return client, true, nil
	}
	if err := api.LookUp(ctx); err != nil {
		return "", false, err
	}
	for r, err := range d.Intake.Intents.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return "", false, err
		}
		e, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return "", false, err
		}
		asked, ok := e.(intent.Requested)
		if !ok {
			return "", false, fmt.Errorf("%s begins with %s", stream, r.Name)
		}
		d.owners.Remember(stream, asked.Request.Client, nil)
		return asked.Request.Client, true, nil
	}
	return "", false, nil
}
