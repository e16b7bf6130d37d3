package app

import (
	"context"
	"fmt"
	"time"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/redis"
	"github.com/tempo-watchtower/watchtower/projections"
)

// sources are the databases of an examination: those that were opened for it, or a running relayer's
// own.
type sources struct {
	log streamed
	// lease returns the holder of a lease in the database, and the end of its term.
	lease func(ctx context.Context, name string) (holder string, until time.Time, err error)
	// work finds rows of the due queue.
	work func(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error)
	view projections.Querier
}

// inspected are databases that were opened read-only.
func inspected(in delivery.Inspection) sources {
	return sources{in.Log, in.Work.Lease, in.Work.Work, in.Work.View()}
}

// sources are the databases of this relayer.
func (r *relay) sources() sources {
	storage := r.in.Ports.Storage
	s := sources{
		log: liveLog{r.in.Store}, view: storage.View,
		work: func(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error) {
			return queued(ctx, storage, refs)
		},
		lease: func(context.Context, string) (string, time.Time, error) {
			return "", time.Time{}, fmt.Errorf("its leases cannot be read here")
		},
	}
	switch {
	case storage.Postgres != nil:
		s.lease = storage.Postgres.Leases.Leased
	case storage.Embedded != nil:
		s.lease = storage.Embedded.Work().Leased
	}
	return s
}

// queued finds rows of one chain's due queue.
func queued(ctx context.Context, storage delivery.Storage, refs []payload.Ref) (map[payload.Ref]tx.Work, error) {
	found := map[payload.Ref]tx.Work{}
	hashes := map[chain.ID][]chain.Hash{}
	for _, ref := range refs {
		hashes[ref.Chain] = append(hashes[ref.Chain], ref.Hash)
	}
	for id, some := range hashes {
		rows, err := storage.Queue.Find(ctx, id, some)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[payload.Ref{Chain: id, Hash: row.Hash}] = row
		}
	}
	return found, nil
}

// liveLog reads a running store's log by stream.
type liveLog struct{ port.Store }

func (l liveLog) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) (page []eventlog.Recorded, err error) {
	for recorded, err := range l.ReadStream(ctx, stream, after) {
		if err != nil {
			return nil, err
		}
		if page = append(page, recorded); len(page) == most {
			break
		}
	}
	return page, nil
}

// examination examines lanes by this relayer's chains and leases.
func (r *relay) examination() *Examination {
	e := &Examination{settings: r.settings, pools: map[chain.ID]*rpc.Pool{}, now: r.in.Ports.Now, log: r.log}
	for i, c := range r.chains {
		e.pools[c.Chain] = r.in.Pools[i]
	}
	if leases, is := r.owner.Leases.(*redis.Leases); is {
		e.leases = leases
	}
	return e
}
