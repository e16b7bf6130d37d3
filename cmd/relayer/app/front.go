package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/api/relay/wallets"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

// front opens the listener of the API of intents, and builds its server.
func (r *relay) front(ctx context.Context) (net.Listener, *http.Server, error) {
	if err := r.settings.CheckAccess(r.in.Front.Access.Keys().Closed()); err != nil {
		return nil, nil, err
	}
	handler, err := r.handler()
	if err != nil {
		return nil, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.settings.Front.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("relay.listen: %w", err)
	}
	r.log.Info("listening for intents", "relay", "http://"+listener.Addr().String())
	return listener, rest.Server(handler, r.in.Front.Limits, r.log), nil
}

// handler builds the handler of the API of intents.
func (r *relay) handler() (http.Handler, error) {
	common := r.in.Front
	common.Rates.Address = rest.Rate(r.settings.Front.Address)
	desk := Desk(r.settings, r.intents, r.in.Ports.Now)
	desk.Allow, desk.Told = r.accept, r.answered
	r.limit(desk)
	if err := TakeWebhooks(desk, r.settings.Webhooks, r.in.Ports.Master); err != nil {
		return nil, err
	}
	return relayapi.New(relayapi.Config{
		API: common, Intake: desk, Query: intents.Query{DB: r.in.Ports.Storage.View}, Tail: r.in.Tail, Webhooks: r.notices.routes(), WaitsFor: r.waitsFor, Fleet: r.fleet(),
		MessageData: r.settings.Front.MessageData,
		RPC:         r.rpc(common, desk),
	}), nil
}

// rpc builds the answer of the routes by which wallets use the relay as their node.
func (r *relay) rpc(common rest.Config, desk *intake.Desk) func(rest.Request) error {
	s, view := r.settings, r.in.Ports.Storage.View
	return r.in.RPC(s.Delivery, r.build, common, func(c *jsonrpc.Config) {
		wallets.Extend(c, wallets.Config{
			Intake: &intake.Repeats{Desk: desk, Window: s.Front.Repeat}, Tail: r.in.Tail,
			Query: intents.Query{DB: view}, Model: (&projector.Projector{Name: intents.Name, DB: view}).Checkpoint,
			Signers: r.signersOn, Pool: func(_ chain.ID, name string) []chain.Address { return s.Pools.Named(name) },
			Atomic:   func(id chain.ID) bool { return s.Formats.Of(id) == settings.Tempo },
			LeastTip: func(id chain.ID) intent.Amount { return intent.Amount(s.On(id).Fee.MinTip) },
			Wait:     s.Front.Wait, Work: s.Delivery.API.WorkTimeout,
		})
	})
}

// signersOn lists the accounts that may sign on a chain. A key that no replica has open here is taken to
// be of a kind that the chain knows.
func (r *relay) signersOn(id chain.ID) []chain.Address {
	return slices.DeleteFunc(slices.Clone(r.settings.Signers.Allowed), func(a chain.Address) bool {
		held, err := r.ring.Signer(a)
		return err == nil && r.settings.Formats.Of(id) != settings.Tempo && held.Kind() != chain.Secp256k1
	})
}

// limit sets the quotas of each client.
func (r *relay) limit(desk *intake.Desk) {
	of := func(quota string, most int) func(used int) {
		return func(used int) { r.in.Ports.Metrics.QuotaUsed(quota, used, most) }
	}
	q, now := r.settings.Quotas, r.in.Ports.Now
	desk.Quota = &intake.Quota{
		Limit: q.Intents, Name: "quota.intents", Thing: "open intent", Things: "open intents",
		Count: r.queue.Open, Now: now, Used: of("intents", q.Intents),
	}
	if r.notices == nil {
		return
	}
	desk.WebhookQuota = &intake.WebhookQuota{Limit: q.Webhooks, InUse: r.notices.rows.InUse, Now: now, Used: of("webhooks", q.Webhooks)}
	desk.Deliveries = &intake.Quota{
		Limit: q.Deliveries, Name: "quota.deliveries", Thing: "queued webhook delivery", Things: "queued webhook deliveries",
		Count: r.notices.rows.Queued, Now: now, Used: of("deliveries", q.Deliveries),
	}
}

// project maintains the read models.
func (r *relay) project(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, p := range []projector.Projector{
		{Name: intents.Name, Filter: intents.Filter(), Fold: intents.Projection{Codec: r.intents.Codec}.Fold},
		{Name: lanes.Name, Filter: lanes.Filter(), Fold: lanes.Projection{Codec: r.lanes.Codec}.Fold},
		{Name: intents.TermsName, Filter: intents.TermsFilter(), Fold: intents.Terms{Codec: r.intents.Codec}.Fold},
	} {
		running.Go(func() { r.in.Project(ctx, p) })
	}
}
