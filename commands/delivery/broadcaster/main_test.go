package broadcaster_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = chain.ID(42431)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a broadcaster with a store, a chain, and its two nodes a and b.
type world struct {
	*broadcaster.Broadcaster
	t      *testing.T
	db     *embedded.DB
	chain  *chaintest.Chain
	a, b   *chaintest.Node
	submit *commands.Submit
}

// newWorld makes a world. Each attempt asks fanout nodes.
func newWorld(t *testing.T, fanout int) *world {
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	c := chaintest.New(chaintest.Options{Chain: id, Decode: chaintest.DecodePlain})
	t.Cleanup(c.Close)
	w := &world{t: t, db: db, chain: c, a: c.Node("a"), b: c.Node("b")}

	config := rpc.Config{Chain: id, Fanout: fanout, Confirmations: 2, SendTimeout: 2 * time.Second, Probe: time.Hour}
	together := &together{nodes: fanout, open: make(chan struct{})}
	for i, n := range []*chaintest.Node{w.a, w.b} {
		server := httptest.NewServer(together.before(n))
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		t.Cleanup(server.Close)
		config.Endpoints = append(config.Endpoints, rpc.Endpoint{Name: []string{"a", "b"}[i], URL: server.URL})
	}
	pool, err := rpc.Open(t.Context(), config)
	check(t, err)
	t.Cleanup(pool.Close)
	_, err = c.Mine()
	check(t, err)

	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	check(t, err)
	log := slog.New(slog.DiscardHandler)
	h := commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}
	vault := commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader}
	looker := &watcher.Watcher{Chain: id, Node: pool.Reader(), Board: db.Work(), Transactions: h, Now: time.Now, Log: log}
	w.submit = &commands.Submit{
		Transactions: h, Vault: vault, Slots: make(chan struct{}, 2), Now: time.Now,
		Decoders: map[chain.ID]func([]byte) (chain.Signed, error){id: chaintest.DecodePlain},
	}
	w.Broadcaster = &broadcaster.Broadcaster{
		Transactions: h, Vault: vault, Nodes: pool, Schedule: tx.DefaultSchedule(), Now: time.Now, Log: log,
		Look: func(ctx context.Context, s tx.State, client string) (broadcaster.Sight, error) {
			sight, err := looker.Look(ctx, looker.Node, s)
			return broadcaster.Sight(sight), err
		},
	}
	return w
}

// together makes nodes answer a broadcast only when every asked node has it. Otherwise a
// quick answer could spare another node the broadcast, and a test would depend on timing.
type together struct {
	nodes int

	mu   sync.Mutex
	came int
	open chan struct{} // closed when the last one has arrived
}

// aloneMax is how long a broadcast waits for the other nodes, which may never be asked: an
// endpoint can be out of rotation.
const aloneMax = 200 * time.Millisecond

func (m *together) before(n http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if bytes.Contains(body, []byte("eth_sendRawTransaction")) {
			m.wait()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		n.ServeHTTP(w, r)
	})
}

func (m *together) wait() {
	m.mu.Lock()
	open := m.open
	if m.came++; m.came == m.nodes {
		close(open)
		m.came, m.open = 0, make(chan struct{})
	}
	m.mu.Unlock()
	select {
	case <-open:
		return
	case <-time.After(aloneMax):
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == open {
		m.came--
	}
}

// plain returns a transaction of one sender and nonce key.
func plain(nonce uint64) chain.Signed {
	return chain.Signed{Chain: id, Type: 0x76, Sender: chain.Address{0xa1}, NonceKey: chain.NonceKey{31: 5}, Nonce: nonce, Gas: 50_000}
}

// accept submits a transaction and returns its bytes and its row in the queue.
func (w *world) accept(t chain.Signed) ([]byte, tx.Work) {
	w.t.Helper()
	return w.acceptFrom("", t)
}

func (w *world) acceptFrom(client string, t chain.Signed) ([]byte, tx.Work) {
	w.t.Helper()
	raw := chaintest.EncodePlain(t)
	answers, err := w.submit.Batch(w.t.Context(), id, [][]byte{raw}, commands.From(client), eventlog.Meta{Actor: "test"})
	check(w.t, err)
	check(w.t, answers[0].Err)
	accepted := answers[0].State.Accepted
	change, _ := scheduler.Plan(w.Schedule, 0, id, accepted.Hash, accepted, accepted.At)
	return raw, *change.Open
}

// attempt makes an attempt and applies its result to the row.
func (w *world) attempt(row *tx.Work) tx.Done {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	done := w.Attempt(ctx, *row)
	if done.Hash != row.Hash || done.Chain != row.Chain {
		w.t.Errorf("done with %s on chain %s, was given %s", done.Hash, done.Chain, row.Hash)
	}
	row.Attempts, row.Note, row.WaitNonce = done.Attempts, done.Note, done.WaitNonce
	return done
}

func (w *world) state(row tx.Work) tx.State {
	w.t.Helper()
	r, err := w.Transactions.Load(w.t.Context(), tx.Stream(id, row.Hash))
	check(w.t, err)
	return r.State
}

// names returns the names of a transaction's events.
func (w *world) names(row tx.Work) (names []string) {
	w.t.Helper()
	for e, err := range w.db.Log().ReadStream(w.t.Context(), tx.Stream(id, row.Hash), 0) {
		check(w.t, err)
		names = append(names, e.Name)
	}
	return names
}

func (w *world) command(row tx.Work, c tx.Command) {
	w.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(w.t, err)
	_, err = w.Transactions.Handle(w.t.Context(), tx.Stream(id, row.Hash), c, o)
	check(w.t, err)
}

// sent returns the names of the nodes that were handed the bytes, and checks that the bytes
// never differ.
func (w *world) sent(raw []byte) (to []string) {
	w.t.Helper()
	for _, d := range w.chain.Received() {
		if d.Hash != chain.Keccak(raw) || !slices.Equal(d.Raw, raw) {
			w.t.Errorf("node %s was handed other bytes", d.Node)
		}
		to = append(to, d.Node)
	}
	return to
}

// reached waits until this many nodes have the bytes: an attempt ends when one node has
// them, without waiting for the others' answers.
func (w *world) reached(raw []byte, nodes int) {
	w.t.Helper()
	for deadline := time.After(10 * time.Second); len(w.sent(raw)) < nodes; {
		select {
		case <-deadline:
			w.t.Fatalf("sent to %v, and to no other", w.sent(raw))
		case <-time.After(time.Millisecond):
		}
	}
}

// mine mines a block, with others' transactions in it.
func (w *world) mine(others ...[]byte) {
	w.t.Helper()
	_, err := w.chain.Mine(others...)
	check(w.t, err)
}
