package app

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// Limits for waiting intents of a lane: the number examined, the number read to find them, their
// minimum wait, and the number of concurrent questions to nodes.
const (
	waitsMost   = 20
	waitsRead   = 200
	waitsAfter  = 5 * time.Second
	waitsAtOnce = 4
)

// waits lists the oldest intents without a nonce that could get one in a lane, and the obstacle
// that the lane's holder would meet for each at this moment. It makes only read requests.
func (e *Examination) waits(ctx context.Context, from sources, f doctor.Facts) ([]doctor.Wait, error) {
	of := intent.Claim{Lane: f.ID, Pools: e.settings.Pools.Of(f.ID.Sender)}
	rows, err := intents.Waiting(ctx, from.view, f.ID.Chain, of.Names(), waitsRead)
	if err != nil {
		return nil, err
	}
	var waits []doctor.Wait
	var states []intent.State
	for _, row := range rows {
		key, chosen := row.Request().LaneKey()
		if chosen && key != f.ID.Key || !chosen && f.ID.Key != protocolKey || len(waits) == waitsMost {
			continue
		}
		id := row.Request().ID()
		var it intent.State
		if err := fold(ctx, from.log, intent.Stream(id), intent.Codec(), func(e intent.Event) { it = it.Evolve(e) }); err != nil {
			return nil, err
		}
		if it.Status() == intent.StatusWaiting && f.Now.Sub(it.Requested.At) >= waitsAfter {
			waits, states = append(waits, doctor.Wait{ID: id, Since: it.Requested.At}), append(states, it)
		}
	}
	if f.NodeErr != nil {
		return waits, nil // that is the reason for all of them
	}
	return waits, commands.Each(len(waits), waitsAtOnce, func(i int) error {
		waits[i].Why = e.wouldHear(ctx, f, states[i])
		return nil
	})
}

// wouldHear returns the obstacle that keeps a lane's holder from giving an intent a nonce at
// this moment.
func (e *Examination) wouldHear(ctx context.Context, f doctor.Facts, it intent.State) error {
	id, format := f.ID, e.settings.Formats.Of(f.ID.Chain)
	n := e.node(id.Chain)
	l := worker.Lane{Relayer: &worker.Relayer{Chain: id.Chain, Node: n, Fees: n, Format: written(format)}, ID: id}
	q, err := l.Quote(ctx, it)
	if err != nil {
		return err
	}
	if q.Payer != nil && (e.settings.Signers.FeePayer == nil || format != settings.Tempo) {
		return fmt.Errorf("the intent's fee payer, %s, is not signers.fee-payer", q.Payer)
	}
	return guard.Check(f.Switches, f.Signer, f.Budget, f.Now, id, it.Requested.Request, q.Worst)
}
