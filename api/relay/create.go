package relay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// results is the answer to a batch: one result for each item, in the order of the request.
type results struct {
	Results []any `json:"results"` // taken or refused
}

// taken is the result for an intent that is recorded.
type taken struct {
	OK     bool   `json:"ok"` // always true
	Intent *shown `json:"intent"`
}

// refused is the result for an intent that is not recorded.
type refused struct {
	OK      bool         `json:"ok"` // always false
	Problem rest.Problem `json:"problem"`
}

// create answers POST /v1/intents. An error in the form of the request refuses the whole
// request; an error in one intent of a batch is that intent's result.
func (d *desk) create(r rest.Request) error {
	q, err := r.Query("wait", "timeout")
	if err != nil {
		return err
	}
	wanted, err := readWait(q)
	if err != nil {
		return err
	}
	key, err := r.IdempotencyKey()
	if err != nil {
		return err
	}
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	requests, batch, err := readRequests(body, key, d.API.Limits.BatchItems, r.Charge)
	if err != nil {
		return err
	}
	if err := r.ChargeInFull(unitsOf(requests)); err != nil {
		return err
	}
	client := d.client(r)
	for i := range requests {
		requests[i].Client = client
	}
	ctx, cancel := r.Work()
	defer cancel()
	answers := d.accept(ctx, r, requests)
	for _, a := range answers {
		r.ChargeRead(a.Read)
	}
	waits := d.waitForAll(r, wanted, answers)
	if batch {
		return d.answerBatch(r, answers, waits)
	}
	return d.answerOne(r, answers[0], waits[0])
}

// accept has the intake accept the requests that the request's key may make, and refuses the others.
func (d *desk) accept(ctx context.Context, r rest.Request, requests []intent.Request) []intake.Answer {
	answers := make([]intake.Answer, len(requests))
	var allowed []intent.Request
	var places []int // of these in answers
	for i := range requests {
		if answers[i].Err = d.mayUse(r, requests[i].From); answers[i].Err == nil {
			allowed, places = append(allowed, requests[i]), append(places, i)
		}
	}
	for n, a := range d.Intake.Create(ctx, allowed, r.Meta()) {
		answers[places[n]] = a
	}
	return answers
}

// mayUse refuses a signer or a pool that the request's key may not use. It does not look whether it is
// served here.
func (d *desk) mayUse(r rest.Request, from intent.From) error {
	key, keyed := r.Key()
	switch {
	case !keyed:
	case from.Signer != nil && !key.UsesSigner(*from.Signer):
		return ErrForeignSigner.Because("the key may not use the signer %s", from.Signer)
	case from.Pool != "" && !key.UsesPool(from.Pool):
		return ErrForeignSigner.Because("the key may not use the pool %s", rest.Quote(from.Pool))
	}
	return nil
}

// unitsOf returns the units of rate that requests cost: an intent causes deliveries to each of its
// webhooks, which wait in one line with other clients' deliveries.
func unitsOf(requests []intent.Request) (n int) {
	for _, r := range requests {
		n += 1 + len(r.Webhooks)
	}
	return n
}

func (d *desk) answerOne(r rest.Request, a intake.Answer, w *rest.Waited) error {
	if a.Err != nil {
		limited(r, a.Err)
		return a.Err
	}
	shown := shownOf(intents.Row{State: a.State})
	shown.AlreadyKnown, shown.Waited = &a.Known, w
	r.Answering().Set("Location", "/v1/intents/"+shown.ID.String())
	r.Note(nil, slog.String("intent", shown.ID.String()))
	return r.Reply(statusOf(w), shown)
}

// answerBatch answers item by item. If no intent was accepted and at least one failed without
// its own fault, the whole request has failed.
func (d *desk) answerBatch(r rest.Request, answers []intake.Answer, waits []*rest.Waited) error {
	out := results{make([]any, len(answers))}
	status, done := http.StatusOK, 0
	var badLuck error
	for i, a := range answers {
		if a.Err == nil {
			shown := shownOf(intents.Row{State: a.State})
			shown.AlreadyKnown, shown.Waited = &a.Known, waits[i]
			out.Results[i] = taken{true, shown}
			status = max(status, statusOf(waits[i]))
			done++
			continue
		}
		p := r.Problem(a.Err)
		p.Errors = rest.Under(strconv.Itoa(i), p.Errors)
		out.Results[i] = refused{Problem: p}
		if !commands.IsRefusal(a.Err) && (badLuck == nil || errors.Is(a.Err, eventlog.ErrUnknown)) {
			badLuck = a.Err
		}
	}
	if done == 0 && badLuck != nil {
		return badLuck
	}
	limited(r, longest(answers))
	r.Note(badLuck, slog.Int("taken", done), slog.Int("refused", len(answers)-done))
	return r.Reply(status, out)
}

// limited adds to the answer's headers when the refused request may be retried, if that is
// known.
func limited(r rest.Request, err error) {
	var later *guard.Later
	if errors.As(err, &later) {
		r.Limited(rest.Limit{Name: later.Name, Rate: rest.Rate(later.Rate), Left: later.Left, Wait: later.Wait})
	}
}

// longest returns the error with the longest wait before a retry; nil if no error has one.
func longest(answers []intake.Answer) (found error) {
	wait := time.Duration(-1)
	for _, a := range answers {
		var later *guard.Later
		if errors.As(a.Err, &later) && later.Wait > wait {
			found, wait = later, later.Wait
		}
	}
	return found
}

// statusOf is 202 while the intent may still be in progress. It is 200 if the request waited
// and the milestone was reached, or can no longer be reached.
func statusOf(w *rest.Waited) int {
	if w != nil && (w.Reached || w.Because == rest.WaitHopeless) {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// stream is the stream of an intent's events.
func stream(id chain.IntentID) eventlog.Stream { return intent.Stream(id) }
