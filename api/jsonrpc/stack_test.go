package jsonrpc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testChain = 1337

// node stands for the nodes behind a proxy, with answers that each test sets.
type node struct {
	mu      sync.Mutex
	answers map[string]func(params json.RawMessage, limit int64) (json.RawMessage, error)
	asked   []string
	clients []string // the client of each call
}

func (n *node) Ask(ctx context.Context, client, method string, params json.RawMessage, limit int64, usable func(json.RawMessage) bool) (json.RawMessage, error) {
	n.mu.Lock()
	n.asked, n.clients = append(n.asked, method+string(params)), append(n.clients, client)
	answer := n.answers[method]
	n.mu.Unlock()
	if answer == nil {
		return json.RawMessage(`null`), ctx.Err()
	}
	return answer(params, limit)
}

func (n *node) says(method, result string) {
	n.does(method, func(json.RawMessage, int64) (json.RawMessage, error) { return json.RawMessage(result), nil })
}

func (n *node) does(method string, answer func(params json.RawMessage, limit int64) (json.RawMessage, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = map[string]func(json.RawMessage, int64) (json.RawMessage, error){}
	}
	n.answers[method] = answer
}

// declined is a node's own error.
type declined struct {
	code          int
	message, data string
}

func (d declined) Error() string { return d.message }
func (d declined) Declined() (int, string, json.RawMessage) {
	return d.code, d.message, json.RawMessage(d.data)
}

// stack is the endpoint on the embedded store, behind a real socket.
type stack struct {
	t      testing.TB
	db     *embedded.DB
	tail   *tail.Tail
	node   *node
	config Config
	url    string
}

func newStack(t testing.TB, change ...func(*Config, *delivery.Config)) *stack {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
	master, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
	check(t, err)
	log := slog.New(slog.DiscardHandler)
	s := &stack{t: t, db: db, node: &node{}, tail: tail.New(db.Log(), tx.Codec(), log)}
	submit := &commands.Submit{
		Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
		Vault:        commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader},
		Decoders:     map[chain.ID]func([]byte) (chain.Signed, error){testChain: ethereum.Decode},
		Grouping:     commands.GroupExplicit, ExpiringWindow: 30 * time.Second,
		Slots: make(chan struct{}, runtime.GOMAXPROCS(0)), Now: time.Now,
	}
	s.config = Config{
		Submit: submit, Proxies: map[chain.ID]Proxy{testChain: s.node}, Await: s.tail.Await,
		NextFree: func(_ context.Context, _ chain.Sequence, from uint64, _ []string, _ rest.Place) (uint64, error) {
			return from, nil
		},
		Fields: ethereum.Fields, Client: "Watchtower/test", Limits: DefaultLimits(),
	}
	shared := rest.Config{
		Health: rest.Health{Database: func(context.Context) error { return nil }},
		Limits: rest.DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, rest.CursorKeyBytes), Hosts: []string{"x"},
		Now: time.Now, Random: rand.Reader, Log: log,
	}
	public := delivery.Config{Config: shared, Submit: submit, Query: transactions.Query{DB: db.View()}, Board: db.Work(), Tail: s.tail}
	for _, c := range change {
		c(&s.config, &public)
	}
	public.RPC = New(s.config)
	following, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.tail.Run(following) }()
	t.Cleanup(func() {
		stop()
		<-ended
		check(t, db.Close())
	})
	s.url = serve(t, delivery.New(public), public.Limits)
	return s
}

func serve(t testing.TB, h http.Handler, l rest.Limits) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	server := rest.Server(h, l, slog.New(slog.DiscardHandler))
	var open sync.WaitGroup // net/http itself does not wait for closed connections
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		check(t, server.Close())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		open.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return "http://" + listener.Addr().String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// post sends a body to a path and returns the answer's status and body.
func (s *stack) post(path, body string, header ...string) (status int, answer string, h http.Header) {
	s.t.Helper()
	status, answer, h, err := s.send(path, body, header...)
	check(s.t, err)
	return status, answer, h
}

// send is post for goroutines other than the test's own.
func (s *stack) send(path, body string, header ...string) (int, string, http.Header, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), res.Header, err
}

// reply is an answer to one call.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// call makes one call; params is JSON.
func (s *stack) call(method, params string) reply {
	s.t.Helper()
	status, text, _ := s.post("/rpc", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params))
	var r reply
	if err := json.Unmarshal([]byte(text), &r); err != nil || status != http.StatusOK || string(r.ID) != "7" || r.Version != "2.0" {
		s.t.Fatalf("%s answered %d %s", method, status, text)
	}
	return r
}

func (r reply) wantResult(t testing.TB, want string) {
	t.Helper()
	if r.Error != nil || string(r.Result) != want {
		t.Errorf("answered %s, %+v; want %s", r.Result, r.Error, want)
	}
}

func (r reply) wantError(t testing.TB, code int, message string) {
	t.Helper()
	if r.Error == nil || r.Error.Code != code || r.Error.Message != message {
		t.Errorf("answered %s, %+v; want error %d %s", r.Result, r.Error, code, message)
	}
}

var testKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := crypto.HexToECDSA("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	if err != nil {
		panic(err)
	}
	return key
})

// signed signs a transaction of type 2 for a chain.
func signed(t testing.TB, id, nonce uint64) ([]byte, chain.Hash) {
	t.Helper()
	to := common.Address{0x77}
	signedTx, err := types.SignNewTx(testKey(), types.LatestSignerForChainID(new(big.Int).SetUint64(id)), &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(id), Nonce: nonce, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(100), Gas: 30_000,
		To: &to, Value: big.NewInt(5), Data: []byte{0xca, 0xfe}, AccessList: types.AccessList{{Address: to, StorageKeys: []common.Hash{{1}}}},
	})
	check(t, err)
	raw, err := signedTx.MarshalBinary()
	check(t, err)
	return raw, chain.Hash(signedTx.Hash())
}

func hexParam(raw []byte) string { return `["0x` + hex.EncodeToString(raw) + `"]` }

// decide executes a command for a transaction.
func (s *stack) decide(hash chain.Hash, c tx.Command) {
	s.t.Helper()
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{})
	check(s.t, err)
	_, err = s.config.Submit.Transactions.Handle(s.t.Context(), tx.Stream(testChain, hash), c, origin)
	check(s.t, err)
}

// mine records a receipt for a transaction.
func (s *stack) mine(hash chain.Hash) {
	s.t.Helper()
	s.decide(hash, tx.SeeReceipt{Receipt: chain.Receipt{Block: chain.Block{Number: 5, Hash: chain.Hash{5}}, Status: 1}, At: time.Now()})
}
