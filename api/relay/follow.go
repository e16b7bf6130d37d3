package relay

import (
	"context"
	"fmt"
	"net/url"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

// follow answers GET /v1/events. It streams the events that webhooks receive, as they happen,
// for all intents that the client may see.
func (d *desk) follow(r rest.Request) error {
	q, err := r.Query("intent", "client", "after", "until")
	if err != nil {
		return err
	}
	s := rest.Stream{Tail: d.Tail, Head: d.Intake.Intents.Store.Head}
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
	own := d.client(r)
	if q.Has("intent") && client != nil {
		s.Names = rest.NamesOne
		s.Reaches = func(ctx context.Context) (bool, error) {
			owner, known, err := d.owner(ctx, eventlog.Stream(s.Stored.Streams[0]), client)
			return known && owner == *client, err
		}
	}
	wanted := s.Stored
	if !q.Has("intent") {
		wanted = eventlog.Filter{Streams: []string{intent.StreamPrefix}}
	}
	public := eventlog.Filter{Names: intent.NoticeNames()}
	s.Show = func(ctx context.Context, e eventlog.Recorded) (any, error) {
		if !wanted.Passes(e.Stream, "") || !public.Passes("", e.Name) {
			return nil, nil // an intent's request, which may be large, is not decoded
		}
		return d.told(ctx, client, own, e)
	}
	return r.Stream(s)
}

// wantedStream returns the filter that the store applies: by stream for one intent, otherwise by the
// names of public events, so that the store reads no requests.
func wantedStream(q url.Values) (eventlog.Filter, error) {
	if !q.Has("intent") {
		return eventlog.Filter{Names: intent.NoticeNames()}, nil
	}
	id, err := chain.ParseIntentID(q.Get("intent"))
	if err != nil {
		return eventlog.Filter{}, rest.BadParameter("intent", "intent: %v", err)
	}
	return eventlog.Filter{Streams: []string{string(stream(id))}}, nil
}

// told returns an event as shown to a client; nil if the event is not public or another
// client's. A nil client sees every client's events. The owner is looked up only of public events.
//
// The inputs of calls that no block contains yet are shown to the client own alone.
func (d *desk) told(ctx context.Context, client *string, own string, r eventlog.Recorded) (any, error) {
	if client != nil {
		if owner, known := d.owners.Recall(r.Stream); known && owner != *client {
			return nil, nil
		}
	}
	public, failed := d.public(r)
	if failed == nil && !public {
		return nil, nil
	}
	viewer := intent.Others
	if client != nil {
		owner, known, err := d.owner(ctx, r.Stream, client)
		switch {
		case err != nil:
			return nil, err
		case !known:
			return nil, fmt.Errorf("%s has no first event", r.Stream)
		case owner != *client: // also if it cannot be decoded
			return nil, nil
		}
	}
	if failed != nil {
		return nil, failed
	}
	if known, ok := d.owners.Recall(r.Stream); ok && known == own {
		viewer = intent.Owner
	}
	text, err := d.tell(ctx, viewer, r)
	if err != nil || text == nil {
		return nil, err
	}
	return text, nil
}

// public reports whether clients see an event, which passes [intent.NoticeNames].
func (d *desk) public(r eventlog.Recorded) (bool, error) {
	if !intent.MayHide(r.Name) {
		return true, nil
	}
	e, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data)
	return err == nil && intent.SequenceOf(e) != 0, err
}

// tell returns an event in the form in which all viewers of a kind get it; nil if the event is not
// public. The intent's stream is read outside the lock of the kept forms: clients that wait for
// their turn to read would hold up others.
func (d *desk) tell(ctx context.Context, viewer intent.Viewer, r eventlog.Recorded) (rest.Encoded, error) {
	kept := &d.tellings[viewer]
	if text, ok := kept.find(r.Position); ok {
		return text, nil
	}
	story, err := d.stories.After(ctx, r)
	if err != nil {
		return nil, err
	}
	return kept.of(r.Position, func() (rest.Encoded, error) {
		said, is := story.Message(viewer)
		if !is {
			return nil, nil
		}
		return rest.Encode(intent.Placed{Position: r.Position, Message: said})
	})
}

// storiesMost bounds the memory for the states of intents that are followed.
const storiesMost = 32 << 20

func (d *desk) newStories() *states.States[intent.Story] {
	return &states.States[intent.Story]{
		Store: d.Intake.Intents.Store, Most: storiesMost, Size: intent.Story.Size, Ask: rest.LookUp,
		Fold: func(s intent.Story, r eventlog.Recorded) (intent.Story, error) {
			id, err := intent.ParseStream(r.Stream)
			if err != nil {
				return s, err
			}
			e, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data)
			if err != nil {
				return s, err
			}
			return s.After(id, e, d.MessageData), nil
		},
	}
}

// owner returns the client that owns the intent of a stream, if the stream exists. The stream's
// first event names the owner, and it never changes. If the owner is the wanted client, the event is
// also remembered for the intent's messages.
func (d *desk) owner(ctx context.Context, stream eventlog.Stream, wanted *string) (client string, known bool, err error) {
	if client, known := d.owners.Recall(stream); known {
		return client, true, nil
	}
	if err := rest.LookUp(ctx); err != nil {
		return "", false, err
	}
	// Another stream may have looked it up while this one waited for a place.
	if client, known := d.owners.Recall(stream); known {
		return client, true, nil
	}
	for r, err := range d.Intake.Intents.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return "", false, err
		}
		client, err := intent.OwnerOf(r, d.Intake.Intents.Codec)
		if err != nil {
			return "", false, err
		}
		d.owners.Remember(stream, client, nil)
		if client == *wanted {
			// The caller's next read of the stream begins behind this event.
			if _, err := d.stories.After(ctx, r); err != nil {
				return "", false, err
			}
		}
		return client, true, nil
	}
	return "", false, nil
}
