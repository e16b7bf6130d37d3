package main_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/failover"
)

// Leaders of an EventStoreDB cluster are killed and resign while clients request payments at a
// steady rate. No request is refused, and each intent is carried out once. The signers' lanes go
// on through the changes.
func TestLeaderChanges(t *testing.T) { // not parallel: it measures response times
	settings := failover.ReadSettings(t)
	cluster, url := failover.Open(t)
	w := newWorld(t, kinds()[0], func(t *testing.T, dir string) []string { return eventStoreAt(t, dir, url) })
	ctx, cancel := context.WithTimeout(context.Background(), patience+settings.For)
	defer cancel()
	w.ctx = ctx
	s := w.relayer(t)
	check(t, s.Start(ctx))
	requests := make([]intent.Request, settings.Requests())
	for n := range requests {
		requests[n] = w.pool(fmt.Sprint("payment-", n))
		requests[n].Gas.Limit = gasEnough
		w.asked[requests[n].ID()] = requests[n]
	}
	c := w.client(t, s)
	figures := failover.Run(ctx, t, cluster, settings, func(ctx context.Context, n int) error {
		return client{ctx, c.url}.create(requests[n])
	})
	t.Log(figures)
	figures.Judge(t)
	for n := range figures.Refused { // a client repeats a request that was refused
		for c.create(requests[n]) != nil && ctx.Err() == nil {
		}
	}
	w.done(t, s)
	check(t, s.Stop(ctx))
	t.Logf("%d intents were carried out, and the chain has executed %d payments", len(w.asked), w.paid(t))
	w.judge(t)
}

// create submits an intent. Its error is a refusal, or a request without an answer.
func (c client) create(r intent.Request) error {
	var answer struct {
		shown
		Code, Detail string // of a problem
	}
	status, err := c.do(http.MethodPost, "/v1/intents", wish(r), &answer)
	switch {
	case err != nil:
		return err
	case status != http.StatusAccepted:
		return fmt.Errorf("%d %s: %s", status, answer.Code, answer.Detail)
	case answer.ID != r.ID():
		return fmt.Errorf("the intent is %s", answer.ID)
	}
	return nil
}
