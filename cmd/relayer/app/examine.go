package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/redis"
)

// Examination is the stores and chains of a configuration, opened read-only, beside relayers
// that may be running on them.
type Examination struct {
	settings settings.Settings
	pools    map[chain.ID]*rpc.Pool
	leases   *redis.Leases // nil when leases are in the database
	now      func() time.Time
	log      *slog.Logger
}

// Limits for the examination of one lane: its duration, and the number of requests.
const (
	examineTime = 20 * time.Second
	knownMost   = 3 // newest attempts at one nonce that nodes are asked for
	answerMost  = 1 << 20
	namesMost   = 1000 // lanes listed at once
)

// Examine opens the stores and chains of s.
func Examine(ctx context.Context, s settings.Settings, now func() time.Time, log *slog.Logger) (*Examination, error) {
	e := &Examination{settings: s, pools: map[chain.ID]*rpc.Pool{}, now: now, log: log}
	for _, c := range s.Delivery.Chains {
		pool, err := rpc.Open(ctx, delivery.PoolConfig(s.Delivery, c, delivery.Ports{Log: log, Metrics: metrics.New("")}))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("chain %s: %w", c.ID, err), e.Close())
		}
		e.pools[c.ID] = pool
	}
	if s.Lane.Leases == settings.ByRedis {
		var err error
		if e.leases, err = redis.OpenLeases(s.Delivery.Redis.Reveal()); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// Close closes the stores and chains.
func (e *Examination) Close() error {
	for _, p := range e.pools {
		p.Close()
	}
	if e.leases != nil {
		return e.leases.Close()
	}
	return nil
}

// Lanes lists the lanes of the given signers on the given chains; empty means all that are
// configured. It lists the default nonce key's lane, and the lanes opened under other keys.
func (e *Examination) Lanes(ctx context.Context, on []chain.ID, signers []chain.Address) (all []chain.Sequence, err error) {
	if len(on) == 0 {
		for _, c := range e.settings.Delivery.Chains {
			on = append(on, c.ID)
		}
	}
	if len(signers) == 0 {
		signers = e.settings.Signers.Allowed
	}
	for _, id := range on {
		if e.pools[id] == nil {
			return nil, fmt.Errorf("chain %s is not among the chains of the configuration", id)
		}
		for _, a := range signers {
			all = append(all, chain.Sequence{Chain: id, Sender: a, Key: protocolKey})
		}
	}
	in, err := delivery.InspectStores(ctx, e.settings.Delivery, e.log)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	for after := int64(0); ; {
		names, next, err := in.Log.Names(ctx, lane.StreamPrefix, after, namesMost)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			id, err := lane.ParseStream(name)
			if err == nil && !slices.Contains(all, id) && slices.Contains(on, id.Chain) && slices.Contains(signers, id.Sender) {
				all = append(all, id)
			}
		}
		if len(names) < namesMost {
			return all, nil
		}
		after = next
	}
}

// Facts reads the facts of a lane.
func (e *Examination) Facts(ctx context.Context, id chain.Sequence) (doctor.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	f := e.begun(ctx, id)
	in, err := delivery.InspectStores(ctx, e.settings.Delivery, e.log)
	if err != nil {
		return f, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	return e.continued(ctx, f, inspected(in))
}

// facts reads the facts of a lane from a running relayer's databases.
func (e *Examination) facts(ctx context.Context, id chain.Sequence, from sources) (doctor.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	return e.continued(ctx, e.begun(ctx, id), from)
}

// begun has the chain's state and the settings. The chain is asked before the log is read, so that
// transactions sent in between are not taken for another sender's.
func (e *Examination) begun(ctx context.Context, id chain.Sequence) doctor.Facts {
	on := e.settings.On(id.Chain)
	f := doctor.Facts{ID: id, Rules: doctor.Rules{
		Policy: on.Fee, Legacy: e.settings.Formats.Of(id.Chain) == settings.Legacy, NoOpGas: on.Lane.NoOpGas, First: written(e.settings.Formats.Of(id.Chain)).First,
		Budget: on.Lane.Budget, Stall: on.Lane.Stall, Look: on.Lane.Look, Claim: on.Lane.Claim,
	}}
	e.askChain(ctx, &f)
	return f
}

// continued adds what the databases have.
func (e *Examination) continued(ctx context.Context, f doctor.Facts, from sources) (doctor.Facts, error) {
	f.Now = e.now()
	if err := readLog(ctx, from.log, &f); err != nil {
		return f, err
	}
	f.Lease = e.lease(ctx, from, f.ID, f.Now)
	if err := e.readFront(ctx, from, &f); err != nil {
		return f, err
	}
	if f.NodeErr == nil && f.Regressed() { // otherwise it was final before the log was read
		f.Witness, f.NodeErr = e.node(f.ID.Chain).Next(ctx, f.ID, false)
	}
	var err error
	f.Waits, err = e.waits(ctx, from, f)
	return f, err
}

func (e *Examination) node(id chain.ID) node { return nodeOf(e.settings, id, e.pools[id]) }

// askChain reads the chain's state. A missing answer is left out, or its error is recorded.
func (e *Examination) askChain(ctx context.Context, f *doctor.Facts) {
	id, pool := f.ID, e.pools[f.ID.Chain]
	if f.Witness, f.NodeErr = e.node(id.Chain).Next(ctx, id, false); f.NodeErr != nil {
		f.MarketErr = f.NodeErr
		return // the other requests would fail as well
	}
	f.Market, f.MarketErr = pool.Reader().Market(f.Rules.Policy.History, f.Rules.Policy.Percentiles()...).Market(ctx)
	f.BaseFee = f.Market.Next
	if all, err := newMoney(e.settings, id.Chain, pool).Balances(ctx, []chain.Address{id.Sender}); err == nil {
		f.Balance = &all[0]
	}
	if id.Key == protocolKey {
		f.Pending = pendingNonce(ctx, pool, id.Sender)
	}
}

// pendingNonce is the nonce after the transactions in one node's pool; nil if unknown.
func pendingNonce(ctx context.Context, pool *rpc.Pool, of chain.Address) *uint64 {
	answer, err := pool.Ask(ctx, "", "eth_getTransactionCount", json.RawMessage(fmt.Sprintf(`["%s","pending"]`, of)), answerMost, nil)
	var text string
	if err != nil || json.Unmarshal(answer, &text) != nil {
		return nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return nil
	}
	return &n
}

// isKnown asks each node in turn for a transaction; nil if unknown.
func isKnown(ctx context.Context, pool *rpc.Pool, hash chain.Hash) *bool {
	has := func(result json.RawMessage) bool { return len(result) > 0 && !bytes.Equal(result, []byte("null")) }
	answer, err := pool.Ask(ctx, "", "eth_getTransactionByHash", json.RawMessage(fmt.Sprintf(`["%s"]`, hash)), answerMost, has)
	if err != nil {
		return nil
	}
	known := has(answer)
	return &known
}

// lease returns the holder of a lane's lease, according to the database or Redis.
func (e *Examination) lease(ctx context.Context, from sources, id chain.Sequence, now time.Time) (l doctor.Lease) {
	name := (&worker.Lane{ID: id}).LeaseName()
	var err error
	l.Where = "Redis"
	if e.leases == nil {
		l.Where = "the database " + e.settings.Delivery.Database.String()
		l.Holder, l.Until, err = from.lease(ctx, name)
	} else {
		var left time.Duration
		l.Holder, left, err = e.leases.Lease(ctx, name)
		l.Until = now.Add(left)
	}
	if err != nil {
		return doctor.Lease{Where: l.Where, Unknown: err.Error()}
	}
	l.Runs = l.Holder != "" && l.Until.After(now)
	return l
}

// streamMost is the number of events of a stream read at once.
const streamMost = 500

// streamed is a log that is read by stream.
type streamed interface {
	Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error)
}

// fold reads a stream and calls each for every event.
func fold[E any](ctx context.Context, log streamed, name eventlog.Stream, codec eventlog.Codec[E], each func(E)) error {
	for after := eventlog.Version(0); ; {
		page, err := log.Stream(ctx, name, after, streamMost)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, r := range page {
			e, err := codec.Decode(r.Name, r.Data)
			if err != nil {
				return fmt.Errorf("%s version %d: %w", name, r.Version, err)
			}
			each(e)
			after = r.Version
		}
		if len(page) < streamMost {
			return nil
		}
	}
}
