package relay

import (
	"context"
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// redeliver answers POST /v1/webhooks/{endpoint}/redeliver. Without a list in the body it
// redelivers all dead letters.
func (d *desk) redeliver(r rest.Request) error {
	body := []byte("{}")
	if r.HasBody() {
		var err error
		if body, err = r.ReadBody(); err != nil {
			return err
		}
	}
	notices, err := readNotices(body)
	if err != nil {
		return err
	}
	charge := func(ctx context.Context, e notice.Endpoint) (int, error) {
		if err := e.Redeliverable(); err != nil {
			return 0, err
		}
		if len(notices) > 0 {
			return len(notices), r.ChargeUpToBurst(len(notices))
		}
		return d.chargeAll(ctx, r, e.ID, notice.Dead)
	}
	return d.wishOf(r, charge, func(ctx context.Context, id notice.EndpointID) error {
		return d.Webhooks.Operator.Redeliver(ctx, id, notices, r.Meta())
	})
}

// chargeAll charges for all webhook deliveries of an endpoint at a stage. It returns their
// number, counted as far as they are charged.
func (d *desk) chargeAll(ctx context.Context, r rest.Request, id notice.EndpointID, stage notice.Stage) (int, error) {
	return r.ChargeCounted(ctx, func(ctx context.Context, most int) (int, error) {
		return d.Webhooks.Rows.Count(ctx, id, stage, most)
	})
}

// readNotices reads the list of webhook deliveries to repeat.
func readNotices(body []byte) (notices []notice.Ref, err error) {
	in := reading{rest.NewDocument(body)}
	one := func(int) error {
		var n notice.Ref
		err := in.Object(
			rest.Member{Name: "intent", Read: func() error {
				text, err := in.Text()
				if err != nil {
					return err
				}
				if n.Intent, err = chain.ParseIntentID(text); err != nil {
					return in.Wrong("is not an intent's id: %v", err)
				}
				return nil
			}},
			rest.Member{Name: "sequence", Read: func() error { return in.number(&n.Seq) }},
		)
		if len(notices) == notice.RedeliverMax {
			return notice.ErrRedeliver.Because("at most %d webhook deliveries may be named", notice.RedeliverMax)
		}
		notices = append(notices, n)
		return err
	}
	err = in.Whole(func() error {
		return in.Object(rest.Member{Name: "notices", Optional: true, Read: func() error {
			if err := in.List(one); err != nil {
				return err
			}
			if len(notices) == 0 {
				return in.Wrong("names no webhook delivery; omit it to redeliver all dead letters")
			}
			return nil
		}})
	})
	return notices, err
}

// enable answers POST /v1/webhooks/{endpoint}/enable.
func (d *desk) enable(r rest.Request) error {
	return d.wishOf(r, nil, func(ctx context.Context, id notice.EndpointID) error {
		return d.Webhooks.Operator.Enable(ctx, id, r.Meta())
	})
}

// disable answers POST /v1/webhooks/{endpoint}/disable.
func (d *desk) disable(r rest.Request) error {
	charge := func(ctx context.Context, e notice.Endpoint) (int, error) {
		return d.chargeAll(ctx, r, e.ID, notice.Queued)
	}
	return d.wishOf(r, charge, func(ctx context.Context, id notice.EndpointID) error {
		return d.Webhooks.Operator.Disable(ctx, id, r.Meta())
	})
}

// wishOf records a command for an endpoint, which is executed soon. It answers with the
// endpoint's present state. charge, when set, charges for the webhook deliveries that the
// command concerns, and returns their number.
func (d *desk) wishOf(r rest.Request, charge func(context.Context, notice.Endpoint) (int, error), record func(context.Context, notice.EndpointID) error) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	e, err := d.found(ctx, r, d.sway(r))
	if err != nil {
		return err
	}
	out := shownWebhookOf(e)
	if charge != nil {
		n, err := charge(ctx, e)
		if err != nil {
			return err
		}
		out.Notices = &n
	}
	if err := record(ctx, e.ID); err != nil {
		return err
	}
	return r.Reply(http.StatusAccepted, out)
}
