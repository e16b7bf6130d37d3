package relay

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// intent answers GET /v1/intents/{id}.
func (d *desk) intent(r rest.Request) error {
	id, err := named(r)
	if err != nil {
		return err
	}
	q, err := r.Query("wait", "timeout")
	if err != nil {
		return err
	}
	wanted, err := readWait(q)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	row, err := d.find(ctx, r, id)
	if err != nil {
		return err
	}
	var waited *rest.Waited
	if wanted != nil {
		all := []intake.Answer{{State: row.State, Version: row.Version}}
		waited = d.waitForAll(r, wanted, all)[0]
		again, done := r.Work() // the first context may have expired
		defer done()
		if row, err = d.find(again, r, id); err != nil {
			return err
		}
	}
	out := shownOf(row)
	out.Waited = waited
	if d.WaitsFor != nil {
		again, done := r.Work()
		defer done()
		switch w, err := d.WaitsFor(again, row); {
		case err != nil: // the intent is shown without it
			r.Note(fmt.Errorf("find the cause of the wait: %w", err))
		case w != nil:
			out.WaitingFor, out.WaitingSince = &waitingFor{w.Code, w.Detail}, unix(w.Since)
		}
	}
	status := http.StatusOK
	if waited != nil {
		status = statusOf(waited)
	}
	return r.ReplyRead(status, out)
}

// find returns an intent from its stream, so a client can read its own request or change at
// once. The calls include their data.
func (d *desk) find(ctx context.Context, r rest.Request, id chain.IntentID) (row intents.Row, err error) {
	var calls []intent.Call
	for recorded, err := range d.history(ctx, r, id) {
		if err != nil {
			return row, err
		}
		e, err := d.Intake.Intents.Codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return row, err
		}
		if requested, is := e.(intent.Requested); is {
			calls = requested.Request.Calls
		}
		if row, err = row.Apply(recorded, e); err != nil {
			return row, err
		}
	}
	if d.client(r) == row.Request().Client || row.State.Receipt != nil {
		// Until the intent is mined, perhaps no node has seen the calls' data. Auditors see it
		// only afterwards.
		row.State.Requested.Request.Calls = calls
	}
	return row, nil
}

// history yields the events of an intent, if the request may read it, and otherwise
// [intent.ErrUnknown] alone. The client is charged for the bytes that were yielded, also if the request
// ends in an error.
func (d *desk) history(ctx context.Context, r rest.Request, id chain.IntentID) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		read := 0
		defer func() { r.ChargeRead(read) }()
		for recorded, err := range d.Intake.History(ctx, d.reach(r), id) {
			if read += len(recorded.Data); !yield(recorded, err) {
				return
			}
		}
	}
}

// named reads the id of the intent that a request is about.
func named(r rest.Request) (id chain.IntentID, err error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["id"])
	if err != nil {
		return id, rest.InParameter("id", ErrInvalidIntentID.Because("the path is not well escaped"))
	}
	if id, err = chain.ParseIntentID(text); err != nil {
		return id, rest.InParameter("id", ErrInvalidIntentID.Because("%v", err))
	}
	return id, nil
}

// eventsMax is the most events in one answer.
const eventsMax = 1000

// trail is the answer to GET /v1/intents/{id}/events, in order of sequence.
type trail struct {
	ID     chain.IntentID  `json:"id"`
	Events []intent.Notice `json:"events"`
	// NextCursor continues the list; empty on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
	HasMore    bool   `json:"hasMore"`
}

// events answers GET /v1/intents/{id}/events with the events that webhooks receive. With after,
// it returns only events after that sequence.
func (d *desk) events(r rest.Request) error {
	id, err := named(r)
	if err != nil {
		return err
	}
	q, err := r.Query("after", "cursor")
	if err != nil {
		return err
	}
	list := "events of " + id.String()
	after, err := r.ReadAfter(q, "the sequence of an event", list)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	out := trail{ID: id, Events: []intent.Notice{}}
	public := eventlog.Filter{Names: intent.NoticeNames()}
	for recorded, err := range d.history(ctx, r, id) {
		if err != nil {
			return err
		}
		if !public.Passes("", recorded.Name) {
			continue
		}
		e, err := d.Intake.Intents.Codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return err
		}
		said, told := intent.Tell(id, e)
		if !told || said.Sequence <= after {
			continue
		}
		if out.HasMore = len(out.Events) == eventsMax; out.HasMore {
			break
		}
		out.Events = append(out.Events, said)
	}
	if out.HasMore {
		last := out.Events[eventsMax-1].Sequence
		out.NextCursor = r.Cursor(eventlog.Position(last), list)
		r.Answering().Set("Link", fmt.Sprintf(`</v1/intents/%s/events?after=%d>; rel="next"`, id, last))
	}
	return r.ReplyRead(http.StatusOK, out)
}
