package wallets

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	onTempo = chain.ID(42431)
	onOther = chain.ID(31337)
)

var (
	alice, bob = chain.Address{0: 0xa1}, chain.Address{0: 0xb0}
	payee      = chain.Address{0: 0x77}
)

// stack is the relay as a node, behind a real socket, on real stores. The node is a map of answers.
type stack struct {
	t       *testing.T
	desk    *intake.Desk
	query   intents.Query
	url     string
	nodes   *nodes
	keys    access.State
	refuses error // with which the operator's rules refuse
}

// nodes answers reads from a map, by method and first parameter; other reads are null.
type nodes struct {
	mu    sync.Mutex
	knows map[string]string
}

func (n *nodes) set(method, param, answer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.knows[method+param] = answer
}

func (n *nodes) Ask(_ context.Context, _, method string, params json.RawMessage, _ int64, _ func(json.RawMessage) bool) (json.RawMessage, error) {
	var all []string
	if json.Unmarshal(params, &all) != nil || len(all) == 0 {
		all = []string{""}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer, ok := n.knows[method+all[0]]; ok {
		return json.RawMessage(answer), nil
	}
	return json.RawMessage("null"), nil
}

func newStack(t *testing.T) *stack {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
	s := &stack{t: t, query: intents.Query{DB: db.View()}, nodes: &nodes{knows: map[string]string{}}}
	s.desk = &intake.Desk{
		Intents: intake.Intents{Store: db.Log(), Codec: intent.Codec(), Random: rand.Reader}, AtOnce: 4, Now: time.Now,
		Chains: map[chain.ID]func(intent.Request) error{onTempo: nil, onOther: nil},
		Allow:  func(context.Context, intent.Request) error { return s.refuses },
	}
	end := tail.New(db.Log(), tx.Codec(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	following.Go(func() { end.Run(ctx) })
	t.Cleanup(func() { stop(); following.Wait() })
	s.serve(db, end)
	return s
}

func (s *stack) serve(db *embedded.DB, end *tail.Tail) {
	master, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
	check(s.t, err)
	front := rest.Config{
		Limits: rest.DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, rest.CursorKeyBytes), Now: time.Now, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler), Access: rest.Access{Keys: func() access.State { return s.keys }},
	}
	submit := &commands.Submit{
		Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
		Vault:        commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader},
	}
	c := jsonrpc.Config{Submit: submit, Proxies: map[chain.ID]jsonrpc.Proxy{onTempo: s.nodes, onOther: s.nodes}, Limits: jsonrpc.DefaultLimits()}
	Extend(&c, Config{
		Intake: &intake.Repeats{Desk: s.desk, Window: time.Minute}, Query: s.query, Tail: end,
		Model:   (&projector.Projector{Name: intents.Name, DB: db.View()}).Checkpoint,
		Signers: func(chain.ID) []chain.Address { return []chain.Address{alice, bob} },
		Pool: func(_ chain.ID, name string) []chain.Address {
			return map[string][]chain.Address{"hot": {alice, bob}, "cold": {bob}}[name]
		},
		Atomic:   func(id chain.ID) bool { return id == onTempo },
		LeastTip: func(chain.ID) intent.Amount { return intent.NewAmount(1000) },
		Wait:     300 * time.Millisecond, Work: 5 * time.Second,
	})
	answer := delivery.RPC(delivery.Config{Config: front, Submit: submit, RPC: jsonrpc.New(c)})
	var routes []rest.Route
	for _, path := range []string{"/rpc/{chainId}", "/rpc/{chainId}/{pool}"} {
		routes = append(routes, rest.Route{Method: http.MethodPost, Path: path, Scope: access.RPC, Answer: answer})
	}
	server := httptest.NewServer(rest.NewFront(front, rest.Kind{Code: safeguard.ErrHalted, Status: http.StatusServiceUnavailable, Title: "The relay accepts no intents now"}).Handler(routes))
	s.t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	s.url = server.URL
}

// key makes an API key, and returns its text.
func (s *stack) key(k access.Key) string {
	s.t.Helper()
	token, id, digest, err := access.NewToken(rand.Reader)
	check(s.t, err)
	k.ID, k.Digest, k.Name = id, digest, "key"
	events, err := s.keys.Decide(access.Create{Key: k, At: time.Now()})
	check(s.t, err)
	s.keys = s.keys.Evolve(events[0])
	return token
}

// answer is the answer to a call.
type answer struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Intent chain.IntentID
			Code   string
			Reason string
		}
	}
}

func (a answer) code() int {
	if a.Error == nil {
		return 0
	}
	return a.Error.Code
}

// body is a call as JSON.
func body(method string, params ...string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[` + strings.Join(params, ",") + `]}`
}

// post sends a body to a path.
func (s *stack) post(path, body string, header ...string) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	check(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	check(s.t, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	check(s.t, err)
	return text
}

func (s *stack) call(path, method string, params []string, header ...string) (a answer) {
	s.t.Helper()
	text := s.post(path, body(method, params...), header...)
	if err := json.Unmarshal(text, &a); err != nil {
		s.t.Fatalf("%s answers %s: %v", method, text, err)
	}
	return a
}

// onTempoPath is the path of the chain with atomic calls.
const onTempoPath, onOtherPath = "/rpc/42431", "/rpc/31337"

func quoted(a any) string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// pay is a transaction of alice with more members.
func pay(more string) []string {
	return []string{`{"from":` + quoted(alice) + `,"to":` + quoted(payee) + more + `}`}
}

// do executes commands for an intent, like the relay's workers.
func (s *stack) do(id chain.IntentID, all ...intent.Command) {
	s.t.Helper()
	for _, c := range all {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(s.t, err)
		_, err = s.desk.Intents.Handle(s.t.Context(), intent.Stream(id), c, o)
		check(s.t, err)
	}
}

// all are the intents in the log.
func (s *stack) all() map[chain.IntentID]intent.State {
	s.t.Helper()
	states := map[chain.IntentID]intent.State{}
	for batch, err := range s.desk.Intents.Store.ReadAll(s.t.Context(), 0, eventlog.Filter{}, 100) {
		check(s.t, err)
		for _, r := range batch.Events {
			id, err := intent.ParseStream(r.Stream)
			check(s.t, err)
			e, err := intent.Codec().Decode(r.Name, r.Data)
			check(s.t, err)
			states[id] = states[id].Evolve(e)
		}
	}
	return states
}

// sent makes the transaction of a client as a signed attempt, and returns the intent and the first hash.
func (s *stack) sent(path string, params []string, header ...string) (id chain.IntentID, hash chain.Hash) {
	s.t.Helper()
	a := s.call(path, "eth_sendTransaction", params, header...)
	if a.code() != jsonrpc.CodeStillWaiting {
		s.t.Fatalf("without a worker the answer is %s, %+v", a.Result, a.Error)
	}
	id = a.Error.Data.Intent
	s.do(id, intent.Assign{Assignment: 1, Place: intent.Place{Signer: alice, Nonce: uint64(id[0])<<8 | uint64(id[1])}, Token: 1, At: time.Now()})
	hash = chain.Keccak(id[:])
	s.do(id, intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hash, At: time.Now()})
	if a = s.call(path, "eth_sendTransaction", params, header...); string(a.Result) != quoted(hash) {
		s.t.Fatalf("the same call again answers %s, %+v, want %s", a.Result, a.Error, hash)
	}
	return id, hash
}

// project feeds the log into the read model, up to its head.
func (s *stack) project() {
	s.t.Helper()
	store := s.desk.Intents.Store
	head, err := store.Head(s.t.Context())
	check(s.t, err)
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	p := projector.Projector{
		Name: intents.Name, DB: s.query.DB, Log: store, Filter: intents.Filter(), Fold: intents.Projection{Codec: intent.Codec()}.Fold,
		Moved: func(at eventlog.Position, _ bool) {
			if at >= head {
				stop()
			}
		},
	}
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
}

// land records that a block contains an attempt.
func (s *stack) land(id chain.IntentID, hash chain.Hash, status uint64) {
	s.t.Helper()
	b := chain.Block{Number: 9, Hash: chain.Hash{9}, Parent: chain.Hash{8}, Time: uint64(time.Now().Unix())}
	s.do(id, intent.Announce{Hash: hash, Receipt: chain.Receipt{Block: b, Status: status, GasUsed: 21_000}, Confirmations: []chain.Block{b}, At: time.Now()})
	s.nodes.set("eth_getTransactionReceipt", hash.String(), `{"transactionHash":`+quoted(hash)+`,"blockHash":"0x09","blockNumber":"0x9","gasUsed":"0x5208","status":"0x1","logs":[],"type":"0x2"}`)
	s.nodes.set("eth_getTransactionByHash", hash.String(), `{"hash":`+quoted(hash)+`,"blockHash":"0x09"}`)
	s.project()
}
