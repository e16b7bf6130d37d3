package watcher

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lens is a node through which a test shows the chain as it needs.
type lens struct {
	Node
	head, final *chain.Block            // shown instead
	receipt     *chain.Receipt          // returned by FindReceipt instead
	failing     func(call string) error // may be nil
}

func (l *lens) fail(call string) error {
	if l.failing == nil {
		return nil
	}
	return l.failing(call)
}

func (l *lens) Head(ctx context.Context) (chain.Block, error) {
	if l.head != nil {
		return *l.head, l.fail("Head")
	}
	return l.Node.Head(ctx)
}

func (l *lens) Newest(ctx context.Context) (chain.Block, error) {
	if l.head != nil {
		return *l.head, l.fail("Head")
	}
	return l.Node.Newest(ctx)
}

func (l *lens) Final(ctx context.Context, tip chain.Block) (chain.Block, error) {
	if l.final != nil {
		return *l.final, nil
	}
	return l.Node.Final(ctx, tip)
}

func (l *lens) Receipts(ctx context.Context, b chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	if err := l.fail("Receipts"); err != nil {
		return nil, err
	}
	return l.Node.Receipts(ctx, b, hashes)
}

func (l *lens) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error) {
	if err := l.fail("BlockByHash"); err != nil {
		return chain.Block{}, chain.Contents{}, err
	}
	return l.Node.BlockByHash(ctx, hash)
}

func (l *lens) Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	if err := l.fail("Nonces"); err != nil {
		return nil, err
	}
	return l.Node.Nonces(ctx, at, sequences)
}

func (l *lens) SureNonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	if err := l.fail("SureNonces"); err != nil {
		return nil, err
	}
	return l.Node.SureNonces(ctx, at, sequences)
}

func (l *lens) FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	if err := l.fail("FindReceipt"); err != nil || l.receipt != nil {
		return l.receipt, err
	}
	return l.Node.FindReceipt(ctx, hash, at)
}

// frail is a board that fails on demand.
type frail struct {
	Board
	failing func(call string) error // may be nil
}

func (f *frail) fail(call string) error {
	if f.failing == nil {
		return nil
	}
	return f.failing(call)
}

func (f *frail) Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error) {
	if err := f.fail("Expiring"); err != nil {
		return nil, err
	}
	return f.Board.Expiring(ctx, moderato, time, each, limit)
}

func (f *frail) Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error) {
	if err := f.fail("Verdicts"); err != nil {
		return nil, err
	}
	return f.Board.Verdicts(ctx, moderato, phase, from, to, after, limit)
}

// notes is a log that records which events were appended together.
type notes struct {
	port.Store
	mu      sync.Mutex
	appends []string
}

func (n *notes) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	appended, err := n.Store.Append(ctx, s, v, events...)
	if err == nil {
		names := make([]string, len(events))
		for i, e := range events {
			names[i] = strings.TrimSuffix(strings.TrimPrefix(e.Name, "tx."), ".v1")
		}
		n.mu.Lock()
		n.appends = append(n.appends, strings.Join(names, "+"))
		n.mu.Unlock()
	}
	return appended, err
}

// world is a chain with two nodes, a store, and a watcher that is run step by step.
type world struct {
	*Watcher
	t     *testing.T
	clock *clock
	chain *chaintest.Chain
	nodes map[string]*chaintest.Node
	pool  *rpc.Pool
	db    *embedded.DB
	log   *notes
	lens  *lens
	board *frail
	run   *run
	apart bool // steps do not wait until settlers have ended
}

// newWorld makes a world with this number of confirmations for finality; 0 uses the node's
// tag, which is a block behind.
func newWorld(t *testing.T, confirmations uint64) *world {
	w := &world{t: t, clock: &clock{at: time.Unix(1_800_000_000, 0)}, nodes: map[string]*chaintest.Node{}}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Now: w.clock.now})
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	finality := map[bool]uint64{true: 1, false: 1 << 40}[confirmations == 0]
	w.chain = chaintest.New(chaintest.Options{
		Chain: moderato, Decode: chaintest.DecodePlain, Now: w.clock.now, Rules: chaintest.Rules{Finality: finality},
	})
	t.Cleanup(w.chain.Close)
	config := rpc.Config{
		Chain: moderato, Confirmations: confirmations, Probe: time.Hour,
		Hedge: time.Minute, HeadTimeout: time.Minute, CallTimeout: time.Minute, // calls are counted: none twice on a slow machine
	}
	for _, name := range []string{"a", "b"} {
		w.nodes[name] = w.chain.Node(name)
		server := httptest.NewServer(w.nodes[name])
		t.Cleanup(server.Close)
		config.Endpoints = append(config.Endpoints, rpc.Endpoint{Name: name, URL: server.URL})
	}
	w.pool, err = rpc.Open(t.Context(), config)
	must(t, err)
	t.Cleanup(w.pool.Close)
	w.log = &notes{Store: w.db.Log()}
	w.lens = &lens{Node: w.pool.Reader()}
	w.board = &frail{Board: w.db.Work()}
	w.Watcher = &Watcher{
		Chain: moderato, Node: w.lens, Board: w.board, Transactions: commands.Transactions{Store: w.log, Codec: tx.Codec(), Random: rand.Reader},
		Poll: time.Second, Now: w.clock.now, Log: slog.New(slog.DiscardHandler),
	}
	w.mine()
	w.restart()
	return w
}

// restart drops the watcher's memory, as a new process would.
func (w *world) restart() {
	w.t.Helper()
	blocks, err := w.Board.Blocks(w.t.Context(), moderato)
	must(w.t, err)
	w.run = w.start(blocks)
}

func (w *world) step() {
	w.t.Helper()
	must(w.t, w.run.step(w.t.Context()))
	if !w.apart {
		w.run.settlers.running.Wait()
		w.run.recording.running.Wait()
		w.run.sealing.running.Wait()
	}
}

// reader returns the node that is read, and the other one.
func (w *world) reader() (reader, other *chaintest.Node) {
	for _, s := range w.pool.Status() {
		if s.Reading {
			reader = w.nodes[s.Name]
		} else {
			other = w.nodes[s.Name]
		}
	}
	return reader, other
}

// mine mines a block, one second after the last, with these transactions.
func (w *world) mine(raws ...[]byte) chain.Block {
	w.t.Helper()
	w.clock.pass(time.Second)
	b, err := w.chain.Mine(raws...)
	must(w.t, err)
	return b
}

// plain returns a transaction of one sender and nonce key.
func plain(nonce uint64) chain.Signed {
	return chain.Signed{Chain: moderato, Type: 0x76, Sender: chain.Address{0xa1}, NonceKey: chain.NonceKey{31: 5}, Nonce: nonce, Gas: 50_000}
}

// accept accepts a transaction, and feeds the queue.
func (w *world) accept(s chain.Signed) (raw []byte, hash chain.Hash) {
	w.t.Helper()
	raw = chaintest.EncodePlain(s)
	hash = chain.Keccak(raw)
	w.command(hash, tx.Accept{Accepted: tx.Accepted{
		Chain: moderato, Hash: hash, Sender: s.Sender, NonceKey: s.NonceKey, Nonce: s.Nonce, Window: s.Window,
		EligibleAt: max(s.Window.After, uint64(w.clock.now().Unix())), At: w.clock.now(),
	}})
	w.feed()
	return raw, hash
}

func (w *world) command(hash chain.Hash, c tx.Command) {
	w.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	must(w.t, err)
	_, err = w.Transactions.Handle(w.t.Context(), tx.Stream(moderato, hash), c, o)
	must(w.t, err)
}

// feed makes the queue fold the log.
func (w *world) feed() {
	w.t.Helper()
	from, err := w.db.Work().Checkpoint(w.t.Context(), scheduler.Reader)
	must(w.t, err)
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), from, eventlog.Filter{Streams: []string{tx.StreamPrefix}}, 1000) {
		must(w.t, err)
		var changes []tx.Change
		for _, r := range batch.Events {
			_, hash, err := tx.ParseStream(r.Stream)
			must(w.t, err)
			e, err := tx.Codec().Decode(r.Name, r.Data)
			must(w.t, err)
			if c, ok := scheduler.Plan(tx.DefaultSchedule(), 0, moderato, hash, e, r.At); ok {
				changes = append(changes, c)
			}
		}
		must(w.t, w.db.Work().Apply(w.t.Context(), scheduler.Reader, from, batch.Next, changes))
		from = batch.Next
	}
}

func (w *world) state(hash chain.Hash) tx.State {
	w.t.Helper()
	r, err := w.Transactions.Load(w.t.Context(), tx.Stream(moderato, hash))
	must(w.t, err)
	return r.State
}

// row returns the queue's row; zero if there is none.
func (w *world) row(hash chain.Hash) tx.Work {
	w.t.Helper()
	rows, err := w.db.Work().Find(w.t.Context(), moderato, []chain.Hash{hash})
	must(w.t, err)
	return append(rows, tx.Work{})[0]
}

// expect compares the events appended since the last expect, append by append.
func (w *world) expect(appends ...string) {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if got, want := strings.Join(w.log.appends, ", "), strings.Join(appends, ", "); got != want {
		w.t.Errorf("appended %q, want %q", got, want)
	}
	w.log.appends = nil
}

// truthful fails the test unless all remembered blocks are the chain's.
func (w *world) truthful() {
	w.t.Helper()
	blocks, err := w.Board.Blocks(w.t.Context(), moderato)
	must(w.t, err)
	if len(blocks) == 0 {
		w.t.Error("no block is remembered")
	}
	for _, b := range blocks {
		at, _, err := w.pool.Reader().BlockAt(w.t.Context(), b.Number)
		must(w.t, err)
		if at.Hash != b.Hash {
			w.t.Errorf("block %d is remembered as one that left the chain", b.Number)
		}
	}
}
