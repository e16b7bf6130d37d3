package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holiman/uint256"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const moderato = 42431

// secret is the first key of every development chain.
const secret = "RELAYER_PRIVATE_KEY_0=ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

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

// world is a chain, a store, and a simplified delivery, advanced step by step.
type world struct {
	t        testing.TB
	clock    *clock
	db       *embedded.DB
	folded   folded
	chain    *chaintest.Chain
	node     *chaintest.Node
	queue    *embedded.Intents
	signer   *keys.Signer
	lane     chain.Sequence
	settings Settings
	fee      chain.Fee // the market's price
	policy   fee.Policy
	hold     bool          // delivery sends nothing
	hole     time.Duration // longest time that a nonce others wait for may stay unsigned; 0: no limit
	may      error         // error of the guard when asked anything
	away     error         // error of the chain when asked
	asked    int           // number of times the chain was asked for the nonce it wants
	slow     time.Duration // time that an answer of the chain takes
	lied     *lane.Witness
	board    []chain.Block // remembered by delivery, if it has not seen the newest block
	reverts  map[chain.IntentID]error
	trials   sync.Map    // by intent: nodes do not answer before its channel is closed
	unpriced fee.Urgency // urgency for which the price of gas is unknown

	// hears gives actors only the news that there is, as in a process, and not news of
	// everything.
	hears bool
	heard map[*actor]eventlog.Position

	mu      sync.Mutex
	runs    int
	sends   map[chain.Hash]int // attempts of delivery
	appends map[string]int     // of events, by name; streams of lanes and intents count per append
	reads   map[string]int     // of streams, by kind
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, clock: &clock{at: time.Unix(1_800_000_000, 0)}, settings: DefaultSettings(),
		fee: chain.Fee{MaxFee: chain.PriceOf(1000), MaxPriorityFee: chain.PriceOf(100)}, appends: map[string]int{}, reads: map[string]int{}, sends: map[chain.Hash]int{},
		policy: noHeadroom(), hole: time.Minute, reverts: map[chain.IntentID]error{}, heard: map[*actor]eventlog.Position{},
	}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Now: w.clock.now})
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	w.chain = chaintest.New(chaintest.Options{Chain: moderato, Decode: tempo.Decode, Now: w.clock.now})
	t.Cleanup(w.chain.Close)
	w.node = w.chain.Node("a")
	w.queue = w.db.Intents()
	signers, err := keys.Environment([]string{secret}, true, slog.New(slog.DiscardHandler))
	must(t, err)
	w.signer = signers[0]
	w.lane = chain.Sequence{Chain: moderato, Sender: w.signer.Address(), Key: chain.NonceKey{31: 5}}
	w.permit()
	w.block()
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// life is a process that may die at an append, after which it has no effect.
type life struct {
	*world
	mu    sync.Mutex
	left  int // effects until it dies
	after bool
	dead  bool
	point string // the one of [CrashPoints] at which it dies
}

var errDead = errors.New("the process has died")

// effect counts an effect outside the process, which dies before or after it.
func (l *life) effect(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	l.left--
	dies := l.left == 0
	if dies && !l.after {
		l.dead = true
		return errDead
	}
	err := do()
	if dies {
		l.dead = true
		return errDead
	}
	return err
}

func (l *life) crash(point string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = l.dead || point == l.point
}

func (l *life) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// store is a process's view of the log.
type store struct {
	port.Store
	*life
}

func (s store) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (a eventlog.Appended, err error) {
	err = s.effect(func() (err error) {
		a, err = s.Store.Append(ctx, stream, expected, events...)
		if err == nil {
			s.count(stream, events)
		}
		return err
	})
	return a, err
}

func (s store) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	kind, _, _ := strings.Cut(string(stream), "-")
	s.reads[kind]++
	return s.Store.ReadStream(ctx, stream, after)
}

func (w *world) count(stream eventlog.Stream, events []eventlog.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, _, _ := strings.Cut(string(stream), "-")
	w.appends[kind]++
	for _, e := range events {
		w.appends[e.Name]++
	}
}

// rows are a process's view of the payloads.
type rows struct {
	commands.PayloadRows
	*life
}

func (r rows) Put(ctx context.Context, sealed []payload.Sealed) error {
	return r.effect(func() error { return r.PayloadRows.Put(ctx, sealed) })
}

// live makes a process with one lane. It dies before or after this many effects; 0 is
// never.
func (w *world) live(effects int, after bool) (*life, *Lane) {
	l := &life{world: w, left: effects, after: after}
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	must(w.t, err)
	log := store{w.db.Log(), l}
	vault := commands.Vault{Rows: rows{w.db.Payloads(), l}, Master: master, Random: rand.Reader}
	transactions := commands.Transactions{Store: log, Codec: tx.Codec(), Random: rand.Reader}
	w.runs++
	r := &Relayer{
		Chain: moderato, Lanes: Lanes{Store: log, Codec: lane.Codec(), Random: rand.Reader}, Intents: Intents{Store: log, Codec: intent.Codec(), Random: rand.Reader},
		Transactions: transactions, Vault: vault, Queue: w.queue, Node: w, Blocks: w, Fees: w,
		Format: Format{
			Type: tempo.Type, Payload: tempo.Payload, PayerPayload: tempo.PayerPayload, Encode: tempo.Encode, Decode: tempo.Decode,
		},
		Delivery: &commands.Submit{
			Transactions: transactions, Vault: vault, Slots: make(chan struct{}, 2), Now: w.clock.now,
			Decoders: map[chain.ID]func([]byte) (chain.Signed, error){moderato: tempo.Decode},
		},
		News:     &News{Chain: moderato, Store: log, Log: slog.New(slog.DiscardHandler)},
		Guard:    keeper{w.guard(log), w},
		Settings: w.settings, Holder: fmt.Sprintf("process %d", w.runs), Now: w.clock.now,
		Crash: l.crash, Log: slog.New(slog.DiscardHandler), Purses: &Purses{},
	}
	return l, &Lane{Relayer: r, ID: w.lane, Signer: w.signer, Pools: []string{"hot"}}
}

// Next returns the chain's own answer, named as agreed by two endpoints.
func (w *world) Next(_ context.Context, s chain.Sequence, final bool) (lane.Witness, error) {
	w.asked++
	w.clock.pass(w.slow)
	if w.away != nil {
		return lane.Witness{}, w.away
	}
	if w.lied != nil {
		return *w.lied, nil
	}
	told := lane.Witness{Nonce: w.chain.Nonce(s), Block: w.chain.Head(), Endpoints: []string{"a", "b"}, Needed: 2, Asked: 3}
	if final {
		told.Block, told.Final = w.chain.Final(), true
		told.Nonce = w.nonceAt(told.Block)
	}
	return told, nil
}

// Final returns the final block of Next.
func (w *world) Final(ctx context.Context) (chain.Block, error) {
	told, err := w.Next(ctx, w.lane, true)
	return told.Block, err
}

// At returns the canonical block at a height.
func (w *world) At(_ context.Context, number uint64) (chain.Block, error) {
	if b, ok := w.chain.Canonical(number); ok {
		return b, nil
	}
	return chain.Block{}, errAway
}

func (w *world) nonceAt(b chain.Block) (n uint64) {
	const nonceManager, getNonce = "0x4e4f4e4345000000000000000000000000000000", "0x89535803"
	input := fmt.Sprintf("%s%024x%x%x", getNonce, 0, w.lane.Sender[:], w.lane.Key[:])
	answer := w.call("eth_call", map[string]string{"to": nonceManager, "data": input}, map[string]any{"blockHash": b.Hash})
	var reply struct{ Result chain.Hash }
	must(w.t, json.Unmarshal([]byte(answer), &reply))
	return binary.BigEndian.Uint64(reply.Result[24:])
}

func (w *world) Gas(ctx context.Context, _ chain.Sequence, r intent.Request) (uint64, error) {
	if until, slow := w.trials.Load(r.ID()); slow {
		select {
		case <-until.(chan struct{}):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if err := w.reverts[r.ID()]; err != nil {
		return 0, err
	}
	return cmp.Or(r.Gas.Limit, 60_000), nil
}

func (w *world) Blocks(context.Context, chain.ID) (blocks []chain.Block, _ error) {
	if w.board != nil {
		return w.board, nil
	}
	head := w.chain.Head().Number
	for n := head - min(head, 300); n <= head; n++ {
		b, _ := w.chain.Canonical(n)
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// Offer applies the world's policy to the world's fee.
func (w *world) Offer(_ context.Context, t fee.Terms) (fee.Offer, error) {
	if w.unpriced != "" && t.Urgency == w.unpriced && !t.NoOp {
		return fee.Offer{}, errUnpriced
	}
	base := chain.Price(*new(uint256.Int).Sub(w.fee.MaxFee.Int(), w.fee.MaxPriorityFee.Int()))
	return w.policy.Offer(chain.Market{Next: &base, Suggested: w.fee.MaxPriorityFee}, t)
}

func (w *world) Bounds(gas uint64) bool { return w.policy.Bounds(gas) }

var errUnpriced = errors.New("nobody knows what gas costs")

// noHeadroom returns a policy that offers the market's price and no more.
func noHeadroom() fee.Policy {
	p := fee.Default()
	p.Slow.Headroom, p.Normal.Headroom, p.MinTip = 0, 0, chain.Price{}
	return p
}

// request returns the n-th request.
func (w *world) request(n int, change ...func(*intent.Request)) intent.Request {
	to := chain.Address{0xee}
	r := intent.Request{
		Key: fmt.Sprintf("key-%d", n), From: intent.From{Pool: "hot"}, Chain: moderato,
		Calls: []intent.Call{{To: &to, Data: intent.Data{byte(n >> 8), byte(n)}}}, Gas: intent.Gas{Limit: 50_000},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// ask records requests, and feeds the queue.
func (w *world) ask(requests ...intent.Request) (ids []chain.IntentID) {
	w.t.Helper()
	for _, r := range requests {
		w.wish(r.ID(), intent.Create{Request: r, At: w.clock.now()})
		ids = append(ids, r.ID())
	}
	w.feed()
	return ids
}

// wish handles a command on an intent, as a client or an operator would.
func (w *world) wish(id chain.IntentID, c intent.Command) {
	w.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	must(w.t, err)
	_, err = Intents{Store: w.db.Log(), Codec: intent.Codec(), Random: rand.Reader}.Handle(w.t.Context(), intent.Stream(id), c, o)
	must(w.t, err)
}

// feed makes the queue fold the log.
func (w *world) feed() {
	w.t.Helper()
	f := &Feeder{Store: w.db.Log(), Queue: w.queue, Checkpoints: w.db.Work(), Codec: intent.Codec(), Log: slog.New(slog.DiscardHandler)}
	at, err := w.db.Work().Checkpoint(w.t.Context(), Reader)
	must(w.t, err)
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), at, eventlog.Filter{Streams: []string{intent.StreamPrefix}}, newsMax) {
		must(w.t, err)
		at, err = f.feeding().Fold(w.t.Context(), at, batch)
		must(w.t, err)
	}
}

// turns runs n turns of an actor. Each has news of everything, unless w.hears is set.
func (w *world) turns(a *actor, n int) error {
	var err error
	for range n {
		a.box.all, a.claim, a.polled = !w.hears, true, time.Time{}
		if w.hears {
			w.tell(a)
		}
		if err = a.turn(w.t.Context()); err != nil {
			return err
		}
	}
	return nil
}
