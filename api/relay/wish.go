package relay

import (
	"context"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// cancel answers POST /v1/intents/{id}/cancel. The body is optional and may give a reason.
func (d *desk) cancel(r rest.Request) error {
	return d.wish(r, true, func(in reading) (carry, error) {
		var reason string
		err := in.Object(rest.Member{Name: "reason", Optional: true, Read: func() error { return in.text(&reason) }})
		return func(ctx context.Context, id chain.IntentID) intake.Answer {
			return d.Intake.Cancel(ctx, d.sway(r), id, reason, r.Meta())
		}, err
	})
}

// speedUp answers POST /v1/intents/{id}/speed-up.
func (d *desk) speedUp(r rest.Request) error {
	return d.wish(r, false, func(in reading) (carry, error) {
		var fee intent.Amount
		err := in.Object(rest.Member{Name: "feePerGas", Read: func() error { return in.amount(&fee) }})
		return func(ctx context.Context, id chain.IntentID) intake.Answer {
			return d.Intake.SpeedUp(ctx, d.sway(r), id, fee, r.Meta())
		}, err
	})
}

// carry executes a command for an intent.
type carry func(ctx context.Context, id chain.IntentID) intake.Answer

// wish answers a command for an intent with the intent's new state. read reads the command from
// the body. The status is 202 unless the intent has ended.
func (d *desk) wish(r rest.Request, bare bool, read func(reading) (carry, error)) error {
	id, err := named(r)
	if err != nil {
		return err
	}
	if _, err := r.Query(); err != nil {
		return err
	}
	body := []byte("{}")
	if !bare || r.HasBody() {
		if body, err = r.ReadBody(); err != nil {
			return err
		}
	}
	in := reading{rest.NewDocument(body)}
	var wished carry
	if err := in.Whole(func() (err error) { wished, err = read(in); return err }); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	a := wished(ctx, id)
	if r.ChargeRead(a.Read); a.Err != nil {
		return a.Err
	}
	status := http.StatusAccepted
	if a.State.End != nil {
		status = http.StatusOK
	}
	return r.Reply(status, shownOf(intents.Row{State: d.seenBy(r, a.State)}))
}

// seenBy returns an intent's state as the request may see it. Until the intent is mined, perhaps no
// node has seen the calls' data. Another client's keys see it only afterwards.
func (d *desk) seenBy(r rest.Request, s intent.State) intent.State {
	asked := &s.Requested.Request
	if d.client(r) == asked.Client || s.Receipt != nil {
		return s
	}
	asked.Calls = slices.Clone(asked.Calls)
	for i := range asked.Calls {
		asked.Calls[i].Data = nil
	}
	return s
}
