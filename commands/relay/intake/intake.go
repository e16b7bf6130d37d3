// Package intake accepts intents from clients, and clients' commands about their intents.
// Every replica does so, without coordination: repeated and concurrent requests meet in the
// intent's own stream, whose first version only one can append. The intake chooses no
// signer, no nonce and no fee.
package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Intents handles the commands of domain/relay/intent.
type Intents = handler.Handler[intent.State, intent.Command, intent.Event]

// ErrNotServed refuses requests that can never be executed here: for an unknown signer or
// pool, or beyond the chain's abilities.
const ErrNotServed = eventlog.Refusal("intent-not-served")

// Desk serves clients.
type Desk struct {
	Intents Intents
	// Chains are the served chains, each with a function that refuses requests that the
	// chain can never execute; nil refuses none.
	Chains map[chain.ID]func(intent.Request) error
	// Webhooks checks which URLs may be called, and Seal hides the secret parts of recorded
	// URLs. Without the two no request may have webhooks.
	Webhooks *WebhookChecks
	Seal     *notice.Sealer
	// Allow, when set, may refuse a request by operators' present rules. It only keeps new
	// intents from being created: a repeated request for an accepted intent is answered
	// even if Allow now refuses.
	Allow func(ctx context.Context, r intent.Request) error
	// Quota, when set, bounds how many intents of each client wait. Like Allow, it only
	// keeps new intents from being created.
	Quota *Quota
	// Deliveries, when set, bounds how many webhook deliveries of each client are queued, likewise.
	// Each webhook of an intent counts as one until the queue has the intent's deliveries. A
	// delivery for an accepted intent is queued in any case.
	Deliveries *Quota
	// WebhookQuota, when set, bounds how many webhooks each client uses, likewise.
	WebhookQuota *WebhookQuota
	// Ahead is how far in the future an intent may ask to begin.
	Ahead time.Duration
	// Most returns the highest price per unit of gas that any signer here offers on a chain
	// for an intent; nil means no limit.
	Most func(of chain.ID) intent.Amount
	// Told, when set, is called with each answer to a request, for metrics.
	Told func(a Answer)
	// AtOnce is how many intents of one batch are accepted concurrently; at least 1.
	AtOnce int
	Now    func() time.Time
}

// Answer is the result of one command: the intent's state, or an error.
type Answer struct {
	State intent.State
	// Version is the version of the last event in State.
	Version eventlog.Version
	// Known means that the intent had been requested before.
	Known bool
	// Read is the number of bytes of the intent's events that were read, also if the command ended
	// in an error. Bytes of another client's intent do not count.
	Read int
	// Err is an eventlog.Refusal, or a transient error.
	Err error
}

// Create answers each request at its place; a bad request does not affect the others. A
// repeated request gets the intent's current state for the life of the intent, even if it
// would be refused now. A different request under the same key is [intent.ErrDiffers]. Of
// several requests under one key the first creates the intent, and the others know it.
func (d *Desk) Create(ctx context.Context, requests []intent.Request, meta eventlog.Meta) []Answer {
	answers := make([]Answer, len(requests))
	alike := byIntent(requests)
	_ = commands.Each(len(alike), d.AtOnce, func(n int) error { // each answer has its own error
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

// byIntent groups the places of requests by intent, in their order.
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

func (d *Desk) create(ctx context.Context, r intent.Request, meta eventlog.Meta) Answer {
	read := 0
	a := d.metered(&read).accept(ctx, r, meta)
	a.Read = read // of the client's own intent: its id depends on the client
	return a
}

func (d *Desk) accept(ctx context.Context, r intent.Request, meta eventlog.Meta) Answer {
	wish := intent.Create{Request: r, Origin: intent.OriginOf(meta), At: d.Now()}
	if d.Seal != nil {
		wish.Request = intent.Sealed(*d.Seal, r)
	}
	var done handler.Result[intent.State]
	back, err := d.admit(ctx, r)
	if err == nil {
		if done, err = d.look(ctx, r); err != nil {
			back()
			return Answer{Err: err}
		}
		done, err = d.handle(ctx, r.ID(), done, wish, meta)
		if err == nil {
			if done.Added == 0 {
				back()
			}
			return Answer{State: done.State, Version: done.Version, Known: done.Added == 0}
		}
		back()
	}
	if !commands.IsRefusal(err) {
		return Answer{Err: err}
	}
	// It may repeat a request that was accepted when it was allowed.
	if done.Version == 0 { // the refusal was not for the recorded intent
		var failed error
		if done, failed = d.Intents.Load(ctx, intent.Stream(r.ID())); failed != nil {
			return Answer{Err: failed}
		}
	}
	if done.State.Status() == intent.StatusAbsent {
		return Answer{Err: err}
	}
	if err := d.same(done.State, wish, r); err != nil {
		return Answer{Err: err}
	}
	return Answer{State: done.State, Version: done.Version, Known: true}
}

// lookFrom is the bytes of calldata from which the intent's stream is read before the append. The
// store would carry them before it finds that the intent exists.
const lookFrom = 16 << 10

// look returns the intent's state if the request is large. Otherwise the intent is expected not to
// exist: a wrong expectation costs one more read.
func (d *Desk) look(ctx context.Context, r intent.Request) (done handler.Result[intent.State], err error) {
	bytes := 0
	for _, c := range r.Calls {
		bytes += len(c.Data)
	}
	if bytes < lookFrom {
		return done, nil
	}
	return d.Intents.Load(ctx, intent.Stream(r.ID()))
}

// admit refuses requests that fail the checks or exceed the client's quotas. The caller
// calls back if no intent was created.
func (d *Desk) admit(ctx context.Context, r intent.Request) (back func(), err error) {
	if err := d.check(ctx, r); err != nil {
		return nil, err
	}
	if d.WebhookQuota != nil && d.Seal != nil {
		if err := d.WebhookQuota.Take(ctx, intent.Sealed(*d.Seal, r)); err != nil {
			return nil, err
		}
	}
	undo, err := d.Deliveries.Take(ctx, r.Client, len(r.Webhooks))
	if err != nil {
		return nil, err
	}
	open, err := d.Quota.Take(ctx, r.Client, 1)
	if err != nil {
		undo()
		return nil, err
	}
	return func() { undo(); open() }, nil
}

// same refuses a request that differs from the recorded one. It also tries former keys,
// with which the recorded webhooks may have been sealed.
func (d *Desk) same(s intent.State, wish intent.Create, r intent.Request) error {
	_, err := s.Decide(wish)
	if d.Seal == nil {
		return err
	}
	for _, former := range d.Seal.Former() {
		if err == nil {
			break
		}
		wish.Request = intent.Sealed(former, r)
		if _, other := s.Decide(wish); other == nil {
			err = nil
		}
	}
	return err
}

// check refuses requests that can never be executed, are not served here, or are not
// allowed.
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
	if last := d.Now().Add(d.Ahead).Unix(); r.NotBefore > uint64(max(last, 0)) {
		return intent.ErrTooFarAhead.Because("notBefore is %d; max-valid-after allows %d, %s from now", r.NotBefore, last, d.Ahead)
	}
	if len(r.Webhooks) > 0 && (d.Webhooks == nil || d.Seal == nil) {
		return intent.ErrWebhookURL.Because("webhooks are switched off here")
	}
	for i, w := range r.Webhooks {
		if len(w.URL) > intent.GivenURLMax {
			return intent.ErrWebhookURL.Because("webhook %d: the URL has more than %d bytes", i, intent.GivenURLMax)
		}
	}
	if d.WebhookQuota != nil && d.Seal != nil {
		if err := d.WebhookQuota.Ask(ctx, intent.Sealed(*d.Seal, r)); err != nil {
			return err
		}
	}
	if d.Allow != nil {
		if err := d.Allow(ctx, r); err != nil {
			return err
		}
	}
	return d.lookUp(ctx, r.Client, r.Webhooks)
}

// lookUp refuses webhooks that may not be called. It resolves their names over the network,
// and therefore runs after all checks that may refuse the client.
func (d *Desk) lookUp(ctx context.Context, client string, all []intent.Webhook) error {
	for i, w := range all {
		if err := d.Webhooks.Check(ctx, client, fmt.Sprintf("webhook %d: ", i), w.URL); err != nil {
			return err
		}
	}
	return nil
}

// Cancel cancels an intent of a client: at once if nothing can have been signed for it,
// otherwise by a no-op at its nonce. If client is nil, an operator asks, who may cancel
// every client's intents. For another client's intent it returns [intent.ErrUnknown], which
// reveals nothing.
func (d *Desk) Cancel(ctx context.Context, client *string, id chain.IntentID, detail string, meta eventlog.Meta) Answer {
	return d.wish(ctx, client, id, meta, func(intent.Request) (intent.Command, error) {
		return intent.Cancel{Detail: detail, At: d.Now()}, nil
	})
}

// SpeedUp makes the next attempts pay at least fee per unit of gas. It refuses a fee above
// Most ([intent.ErrOverCeiling]), which would otherwise be cut without notice. For client
// see [Desk.Cancel].
func (d *Desk) SpeedUp(ctx context.Context, client *string, id chain.IntentID, fee intent.Amount, meta eventlog.Meta) Answer {
	return d.wish(ctx, client, id, meta, func(r intent.Request) (intent.Command, error) {
		if d.Most != nil && fee.Cmp(d.Most(r.Chain)) > 0 {
			return nil, intent.ErrOverCeiling.Because("on chain %s the ceiling is %s, less than %s", r.Chain, d.Most(r.Chain), fee)
		}
		return intent.SpeedUp{Fee: fee, At: d.Now()}, nil
	})
}

func (d *Desk) wish(ctx context.Context, client *string, id chain.IntentID, meta eventlog.Meta, of func(intent.Request) (intent.Command, error)) Answer {
	read := 0
	r, err := d.load(ctx, client, id, &read)
	if err != nil {
		return Answer{Read: read, Err: err}
	}
	c, err := of(r.State.Requested.Request)
	if err != nil {
		return Answer{Read: read, Err: err}
	}
	if r, err = d.metered(&read).handle(ctx, id, r, c, meta); err != nil {
		return Answer{Read: read, Err: err}
	}
	return Answer{State: r.State, Version: r.Version, Known: r.Added == 0, Read: read}
}

func (d *Desk) handle(ctx context.Context, id chain.IntentID, r handler.Result[intent.State], c intent.Command, meta eventlog.Meta) (handler.Result[intent.State], error) {
	return d.Intents.DoFrom(ctx, intent.Stream(id), r, c, meta)
}
