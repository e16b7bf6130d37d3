package scheduler_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// stored is a store that delivery can run on.
type stored struct {
	log      port.Store
	payloads commands.PayloadRows
	work     interface {
		scheduler.Queue
		watcher.Board
	}
	checkpoints port.Checkpoints
}

// onBoth runs a test on both stores.
func onBoth(t *testing.T, test func(t *testing.T, s stored)) {
	t.Run("embedded", func(t *testing.T) {
		db := open(t)
		test(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()})
	})
	t.Run("postgres", func(t *testing.T) {
		db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{
			Window: embedded.DefaultWindow, Logger: slog.New(slog.DiscardHandler),
		})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		test(t, stored{db.Log, db.Payloads, db.Work, db.Checkpoints})
	})
}

// delivery is a whole delivery on a chain in memory: all that a process runs, except its
// API.
type delivery struct {
	stored
	t        *testing.T
	chain    *chaintest.Chain
	node     *chaintest.Node
	submit   *commands.Submit
	schedule tx.Schedule
	every    time.Duration // interval between blocks
	now      func() time.Time
}

// hurried is a schedule fifty times as fast as the default: one second of a block becomes
// 20 ms.
func hurried() tx.Schedule {
	return tx.Schedule{
		RetryMin: 5 * time.Millisecond, RetryMax: 100 * time.Millisecond,
		RebroadcastMin: 60 * time.Millisecond, RebroadcastMax: 300 * time.Millisecond,
		ExpirySoonWindow: time.Second, ExpirySoonRetryMax: 100 * time.Millisecond,
	}
}

// deliver makes a delivery. Nothing runs before start.
func deliver(t *testing.T, s stored, rules chaintest.Rules, chainNow func() time.Time) *delivery {
	c := chaintest.New(chaintest.Options{Chain: id, Decode: chaintest.DecodePlain, Rules: rules, Now: chainNow})
	t.Cleanup(c.Close)
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	check(t, err)
	return &delivery{
		stored: s, t: t, chain: c, node: c.Node("a"), schedule: hurried(), every: 20 * time.Millisecond, now: time.Now,
		submit: &commands.Submit{
			Transactions: commands.Transactions{Store: s.log, Codec: tx.Codec(), Random: rand.Reader},
			Vault:        commands.Vault{Rows: s.payloads, Master: master, Random: rand.Reader},
			Slots:        make(chan struct{}, 2), Now: time.Now,
			Decoders:       map[chain.ID]func([]byte) (chain.Signed, error){id: chaintest.DecodePlain},
			ExpiringWindow: time.Duration(rules.ExpiringWindow) * time.Second,
		},
	}
}

// start runs the delivery and the chain until the test ends or stop is called.
func (d *delivery) start() (stop func()) {
	t := d.t
	server := httptest.NewServer(d.node)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	pool, err := rpc.Open(t.Context(), rpc.Config{
		Chain: id, Fanout: 1, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}},
		SendTimeout: time.Second, Probe: time.Second, Poll: d.every,
	})
	check(t, err)
	log := slog.New(slog.DiscardHandler)
	w := &watcher.Watcher{
		Chain: id, Node: pool.Reader(), Board: d.work, Transactions: d.submit.Transactions, Poll: time.Second,
		Now: d.now, Log: log,
	}
	b := &broadcaster.Broadcaster{
		Transactions: d.submit.Transactions, Vault: d.submit.Vault, Nodes: pool, Schedule: d.schedule,
		Now: d.now, Log: log,
		Look: func(ctx context.Context, s tx.State, client string) (broadcaster.Sight, error) {
			sight, err := w.Look(ctx, w.Node, s)
			return broadcaster.Sight(sight), err
		},
	}
	var workers []*scheduler.Worker
	for _, holder := range []string{"a", "b"} { // as two replicas would
		workers = append(workers, &scheduler.Worker{
			Chain: id, Queue: d.work, Holder: holder, Attempt: b.Attempt,
			Lease: 3 * time.Second, Poll: 20 * time.Millisecond, Slots: 32, Log: log,
		})
	}
	feeder := &scheduler.Feeder{
		Store: d.log, Queue: d.work, Checkpoints: d.checkpoints, Codec: tx.Codec(), Schedule: d.schedule,
		Fed: func(eventlog.Position) { workers[0].Wake() }, Log: log,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.chain.Run(ctx, d.every) })
	running.Go(func() { w.Run(ctx) })      //nolint:errcheck // it ends with ctx
	running.Go(func() { feeder.Run(ctx) }) //nolint:errcheck // likewise
	for _, worker := range workers {
		running.Go(func() { worker.Run(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		pool.Close()
		server.Close()
	})
	t.Cleanup(stop)
	return stop
}

// accept submits transactions and returns their hashes.
func (d *delivery) accept(signed ...chain.Signed) (hashes []chain.Hash) {
	d.t.Helper()
	var raws [][]byte
	for _, s := range signed {
		raws = append(raws, chaintest.EncodePlain(s))
	}
	answers, err := d.submit.Batch(d.t.Context(), id, raws, commands.From(""), eventlog.Meta{Actor: "test"})
	check(d.t, err)
	for _, a := range answers {
		check(d.t, a.Err)
		hashes = append(hashes, a.State.Accepted.Hash)
	}
	return hashes
}

func (d *delivery) state(hash chain.Hash) tx.State {
	d.t.Helper()
	r, err := d.submit.Transactions.Load(d.t.Context(), tx.Stream(id, hash))
	check(d.t, err)
	return r.State
}

// row waits until the queue knows a transaction, and returns its row.
func (d *delivery) row(hash chain.Hash) (row tx.Work) {
	d.t.Helper()
	d.until("the queue knows "+hash.String(), func() bool {
		rows, err := d.work.Find(d.t.Context(), id, []chain.Hash{hash})
		check(d.t, err)
		if len(rows) == 1 {
			row = rows[0]
		}
		return len(rows) == 1
	})
	return row
}

// patience bounds every wait.
const patience = time.Minute

// until waits for a condition.
func (d *delivery) until(what string, true func() bool) {
	d.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.After(patience)
	for !true() {
		select {
		case <-tick.C:
		case <-over:
			d.t.Fatal("in vain: ", what)
		}
	}
}

// blocks waits for n more blocks.
func (d *delivery) blocks(n uint64) {
	d.t.Helper()
	from := d.chain.Head().Number
	d.until("blocks", func() bool { return d.chain.Head().Number >= from+n })
}

// sent counts how often each transaction was handed to the node.
func (d *delivery) sent() map[chain.Hash]int {
	times := map[chain.Hash]int{}
	for _, delivered := range d.chain.Received() {
		times[delivered.Hash]++
	}
	return times
}

// calls counts the node's calls of all methods.
func (d *delivery) calls() (total int) {
	for _, n := range d.node.Calls() {
		total += n
	}
	return total
}

// transfer returns a transaction in the nonce sequence of key.
func transfer(sender byte, key uint64, nonce uint64) chain.Signed {
	var k chain.NonceKey
	for i := range 8 {
		k[31-i] = byte(key >> (8 * i))
	}
	return chain.Signed{Chain: id, Type: 0x76, Sender: chain.Address{sender}, NonceKey: k, Nonce: nonce, Gas: 50_000}
}
