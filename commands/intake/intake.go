// Package intake takes intents on from clients, and their wishes about those they have.
// Every replica does, without asking another: what is asked twice, or by a hundred at
// once, meets in the intent's own stream, whose first version only one can append. It
// chooses no signer, no nonce and no fee.
package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Intents handles the commands of domain/intent.
type Intents = commands.Handler[intent.State, intent.Command, intent.Event]

// ErrNotServed refuses what nobody here would ever carry out: a signer or pool that there
// is not, or what the chain has no way to do.
const ErrNotServed = event.Refusal("intent-not-served")

// Guard says which URLs may be called. Its errors quote nothing of a URL that may be
// secret: user, path and query. One that is a net.Error is bad luck: nobody could look.
type Guard interface {
	CheckNow(ctx context.Context, url string) error
}

// Desk is where clients are served.
type Desk struct {
	Intents Intents
	// Chains are those that are served, each with what refuses requests that the chain
	// can never carry out; nil refuses none.
	Chains map[chain.ID]func(intent.Request) error
	// Webhooks says which may be called, and Seal hides what of their URLs must not be
	// recorded. Without the two no request may have webhooks.
	Webhooks Guard
	Seal     *intent.Sealer
	// Allow, when set, may refuse a request by what operators allow now. What has been
	// taken on before is not asked about again for its outcome: a refusal only keeps an
	// intent from coming into being.
	Allow func(ctx context.Context, r intent.Request) error
	// Quota, when set, bounds how many intents of each client wait. Like Allow, it only keeps
	// an intent from coming into being.
	Quota *Quota
	// WebhookQuota, when set, bounds how many webhooks each client uses, likewise.
	WebhookQuota *WebhookQuota
	// Most is the most that anybody here offers for a unit of gas of a chain, for what an
	// intent wants; nil knows of no bound.
	Most func(of chain.ID) intent.Amount
	// Told, when set, is called with each answer to a request: for whoever counts.
	Told func(a Answer)
	// AtOnce is how many of one batch are taken on at once; at least 1.
	AtOnce int
	Now    func() time.Time
	Random io.Reader
}

// Answer is what became of one wish: how the intent stands, or why not.
type Answer struct {
	State intent.State
	// Known means that the intent had been asked for before.
	Known bool
	// Err is an event.Refusal, or bad luck.
	Err error
}

// Create answers each request in its place; one bad one does not touch the others. The
// same request again gets the intent as it stands, for the life of the intent, whatever
// would be refused now; another one under the same key is [intent.ErrDiffers]. Of those
// under one key the first is taken on, and known to the others.
func (d *Desk) Create(ctx context.Context, requests []intent.Request, meta event.Meta) []Answer {
	answers := make([]Answer, len(requests))
	alike := byIntent(requests)
	_ = commands.Each(len(alike), d.AtOnce, func(n int) error { // each answer has its own
		for _, i := range alike[n] {
			answers[i] = d.create(ctx, requests[i], meta)
			if d.Told != nil {
				d.Told(answers[i])
			}
		}
		return nil
	})
	return answers
}

// byIntent are the places of the requests that are about one intent, in their order.
func byIntent(requests []intent.Request) (alike [][]int) {
	known := make(map[chain.IntentID]int, len(requests))
	for i, r := range requests {
		id := r.ID()
		n, again := known[id]
		if !again {
			n = len(alike)
			known[id], alike = n, append(alike, nil)
		}
		alike[n] = append(alike[n], i)
	}
	return alike
}

func (d *Desk) create(ctx context.Context, r intent.Request, meta event.Meta) Answer {
	wish := intent.Create{Request: r, At: d.Now()}
	if d.Seal != nil {
		wish.Request = d.Seal.Request(r)
	}
	back, err := d.admit(ctx, r)
	if err == nil {
		var done commands.Result[intent.State]
		// It is expected not to exist: being wrong costs one more read.
		done, err = d.handle(ctx, r.ID(), done, wish, meta)
		if err == nil {
			if done.Added == 0 {
				back()
			}
			return Answer{State: done.State, Known: done.Added == 0}
		}
		back()
	}
	if !commands.IsRefusal(err) {
		return Answer{Err: err}
	}
	// It may be the repetition of what was taken on when it was allowed.
	known, failed := d.Intents.Load(ctx, intent.Stream(r.ID()))
	switch {
	case failed != nil:
		return Answer{Err: failed}
	case known.State.Status() == intent.StatusAbsent:
		return Answer{Err: err}
	}
	if err := d.same(known.State, wish, r); err != nil {
		return Answer{Err: err}
	}
	return Answer{State: known.State, Known: true}
}

// admit refuses what the checks refuse, or the client's quota. The caller calls back when no
// intent has come into being.
func (d *Desk) admit(ctx context.Context, r intent.Request) (back func(), err error) {
	if err := d.check(ctx, r); err != nil {
		return nil, err
	}
	if d.WebhookQuota != nil && d.Seal != nil {
		if err := d.WebhookQuota.Take(ctx, d.Seal.Request(r)); err != nil {
			return nil, err
		}
	}
	if d.Quota == nil {
		return func() {}, nil
	}
	return d.Quota.Take(ctx, r.Client)
}

// same refuses what is not the request that an intent was made by: also when that was
// recorded with its webhooks sealed under a former key.
func (d *Desk) same(s intent.State, wish intent.Create, r intent.Request) error {
	_, err := s.Decide(wish)
	if d.Seal == nil {
		return err
	}
	for _, former := range d.Seal.Former() {
		if err == nil {
			break
		}
		wish.Request = former.Request(r)
		if _, other := s.Decide(wish); other == nil {
			err = nil
		}
	}
	return err
}

// check refuses what can never be done, is not served here, or not allowed.
func (d *Desk) check(ctx context.Context, r intent.Request) error {
	if err := r.Check(); err != nil {
		return err
	}
	able, served := d.Chains[r.Chain]
	if !served {
		return commands.Unserved(r.Chain, d.Chains)
	}
	if able != nil {
		if err := able(r); err != nil {
			return err
		}
	}
	if len(r.Webhooks) > 0 && (d.Webhooks == nil || d.Seal == nil) {
		return intent.ErrWebhookURL.Because("no webhooks are called from here")
	}
	for i, w := range r.Webhooks {
		if len(w.URL) > intent.GivenURLMax {
			return intent.ErrWebhookURL.Because("webhook %d: the URL has more than %d bytes", i, intent.GivenURLMax)
		}
	}
	if d.WebhookQuota != nil && d.Seal != nil {
		if err := d.WebhookQuota.Ask(ctx, d.Seal.Request(r)); err != nil {
			return err
		}
	}
	if d.Allow != nil {
		if err := d.Allow(ctx, r); err != nil {
			return err
		}
	}
	return d.lookUp(ctx, r.Webhooks)
}

// lookUp refuses webhooks that may not be called. It asks others about their names, which
// comes after all that may refuse the client.
func (d *Desk) lookUp(ctx context.Context, all []intent.Webhook) error {
	for i, w := range all {
		if err := CheckWebhook(ctx, d.Webhooks, fmt.Sprintf("webhook %d: ", i), w.URL); err != nil {
			return err
		}
	}
	return nil
}

// CheckWebhook refuses a URL that may not be called ([intent.ErrWebhookURL]), with a
// sentence that begins with which it is.
func CheckWebhook(ctx context.Context, g Guard, which, url string) error {
	err := g.CheckNow(ctx, url)
	var nobody net.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("look at a webhook: %w", ctx.Err())
	case errors.As(err, &nobody):
		return fmt.Errorf("look at a webhook: %w", err)
	}
	return intent.ErrWebhookURL.Because("%s%v", which, err)
}

// Cancel withdraws an intent of a client's: at once where nothing can have been signed
// for it, else by what takes its nonce. nil is an operator, who may for every client. Of
// one that is another's nothing is told: [intent.ErrUnknown].
func (d *Desk) Cancel(ctx context.Context, client *string, id chain.IntentID, detail string, meta event.Meta) Answer {
	return d.wish(ctx, client, id, meta, func(intent.Request) (intent.Command, error) {
		return intent.Cancel{Detail: detail, At: d.Now()}, nil
	})
}

// SpeedUp has the next attempts pay at least fee for a unit of gas. More than anybody here
// offers is refused ([intent.ErrOverCeiling]): it would be cut to the most, which is not what
// was asked for. For client see [Desk.Cancel].
func (d *Desk) SpeedUp(ctx context.Context, client *string, id chain.IntentID, fee intent.Amount, meta event.Meta) Answer {
	return d.wish(ctx, client, id, meta, func(r intent.Request) (intent.Command, error) {
		if d.Most != nil && fee.Cmp(d.Most(r.Chain)) > 0 {
			return nil, intent.ErrOverCeiling.Because("on chain %s at most %s is offered here, not %s", r.Chain, d.Most(r.Chain), fee)
		}
		return intent.SpeedUp{Fee: fee, At: d.Now()}, nil
	})
}

func (d *Desk) wish(ctx context.Context, client *string, id chain.IntentID, meta event.Meta, of func(intent.Request) (intent.Command, error)) Answer {
	r, err := d.Intents.Load(ctx, intent.Stream(id))
	if err != nil {
		return Answer{Err: err}
	}
	if r.State.Status() == intent.StatusAbsent || client != nil && *client != r.State.Requested.Request.Client {
		return Answer{Err: intent.ErrUnknown}
	}
	c, err := of(r.State.Requested.Request)
	if err != nil {
		return Answer{Err: err}
	}
	if r, err = d.handle(ctx, id, r, c, meta); err != nil {
		return Answer{Err: err}
	}
	return Answer{State: r.State, Known: r.Added == 0}
}

func (d *Desk) handle(ctx context.Context, id chain.IntentID, r commands.Result[intent.State], c intent.Command, meta event.Meta) (commands.Result[intent.State], error) {
	origin, err := commands.Begin(d.Random, meta)
	if err != nil {
		return r, err
	}
	return d.Intents.HandleFrom(ctx, intent.Stream(id), r, c, origin)
}
