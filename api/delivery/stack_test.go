package delivery

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// The chain of most tests.
const testChain = 42431

var testTime = time.Unix(1_800_000_000, 0) // January 2027

// stack is the API on the embedded store, behind a real socket. The log is not fed into the
// read models until a test does so.
type stack struct {
	t      testing.TB
	db     *embedded.DB
	config Config
	addr   string
	since  atomic.Int64 // time since testTime, by the test's clock
}

func (s *stack) now() time.Time { return testTime.Add(time.Duration(s.since.Load())) }

// elapse advances the clock.
func (s *stack) elapse(d time.Duration) { s.since.Add(int64(d)) }

// newStack serves the API until the test ends. change may alter the configuration.
func newStack(t testing.TB, change ...func(*Config)) *stack {
	t.Helper()
	s := &stack{t: t}
	db, err := embedded.Open("", embedded.Options{Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := projections.Migrate(t.Context(), db.View(), migrations.View); err != nil {
		t.Fatal(err)
	}
	s.db, s.config = db, testConfig(t, db, s.now)
	for _, c := range change {
		c(&s.config)
	}
	s.addr = serve(t, New(s.config), s.config.Limits)
	return s
}

func testConfig(t testing.TB, db *embedded.DB, now func() time.Time) Config {
	t.Helper()
	master, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	shared := rest.Config{
		Health: rest.Health{
			Version: "0.1.0", StartedAt: testTime.Add(-time.Minute), Chains: []chain.ID{testChain, 1, 4217}, RPCEndpoints: 2,
			Database: func(ctx context.Context) error { _, err := db.Log().Head(ctx); return err },
		},
		Limits: rest.DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, rest.CursorKeyBytes), Hosts: []string{"a", "x"},
		Now: now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	}
	return Config{
		Config: shared,
		Submit: &commands.Submit{
			Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
			Vault:        commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader},
			Decoders:     map[chain.ID]func([]byte) (chain.Signed, error){testChain: decode, 1: decode, 4217: decode},
			Grouping:     commands.GroupExplicit, ExpiringWindow: 30 * time.Second,
			Slots: make(chan struct{}, runtime.GOMAXPROCS(0)), Now: now,
		},
		Query: transactions.Query{DB: db.View()}, Groups: Groups{Query: groups.Query{DB: db.View()}, Checkpoints: db.Work()}, Board: db.Work(), Tail: tailOf(t, db),
	}
}

// tailOf is the log's tail, followed until the test ends.
func tailOf(t testing.TB, db *embedded.DB) *tail.Tail {
	t.Helper()
	end := tail.New(db.Log(), tx.Codec(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	following.Go(func() { end.Run(ctx) })
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	return end
}

func decode(raw []byte) (chain.Signed, error) {
	if len(raw) > 0 && raw[0] == 0x76 {
		return tempo.Decode(raw)
	}
	return ethereum.Decode(raw)
}

// serve serves a handler on a socket until the test ends, and returns its address.
func serve(t testing.TB, h http.Handler, l rest.Limits) string {
	t.Helper()
	return serveOn(t, resttest.Listen(t), h, l)
}

// serveOn is serve on a listener from the test.
func serveOn(t testing.TB, listener net.Listener, h http.Handler, l rest.Limits) string {
	t.Helper()
	resttest.Serve(t, rest.Server(h, l, slog.New(slog.DiscardHandler)), rest.LimitListener(listener, l.Connections, nil))
	return listener.Addr().String()
}

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
	closes bool // announced to close the connection
}

// routes maps paths to the templates of their routes.
var routes = []struct {
	path     *regexp.Regexp
	template string
}{

	{regexp.MustCompile(`^(/v1/transactions/)[^/]+(.*)$`), "$1{hash}$2"},
	{regexp.MustCompile(`^(/v1/senders/)[^/]+(/groups)$`), "$1{sender}$2"},
	{regexp.MustCompile(`^(/v1/senders/)[^/]+(/groups/)[^/]+(.*)$`), "$1{sender}$2{groupId}$3"},
}

// do sends a request and checks the answer against the contract.
func (s *stack) do(method, target string, body []byte, header ...string) response {
	s.t.Helper()
	res, err := s.send(method, target, body, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	path, _, _ := strings.Cut(target, "?")
	for _, r := range routes {
		path = r.path.ReplaceAllString(path, r.template)
	}
	checkAnswer(s.t, method, path, res)
	return res
}

// send is do for goroutines other than the test's own.
func (s *stack) send(method, target string, body []byte, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+target, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	content, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, content, res.Close}, err
}

func (s *stack) get(target string) response {
	s.t.Helper()
	return s.do(http.MethodGet, target, nil)
}

// result is one result of a batch.
type result struct {
	OK           bool         `json:"ok"`
	TxHash       chain.Hash   `json:"txHash"`
	Sender       string       `json:"sender"`
	NonceKey     string       `json:"nonceKey"`
	Nonce        uint64       `json:"nonce"`
	GroupID      string       `json:"groupId"`
	EligibleAt   uint64       `json:"eligibleAt"`
	ExpiresAt    uint64       `json:"expiresAt"`
	Status       string       `json:"status"`
	AlreadyKnown bool         `json:"alreadyKnown"`
	Problem      rest.Problem `json:"problem"`
}

// submit posts raw transactions and expects 200.
func (s *stack) submit(raws ...[]byte) []result {
	s.t.Helper()
	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...))
	if res.status != http.StatusOK {
		s.t.Fatalf("POST answered %d: %s", res.status, res.body)
	}
	var out struct{ Results []result }
	unmarshal(s.t, res.body, &out)
	if len(out.Results) != len(raws) {
		s.t.Fatalf("%d results for %d transactions", len(out.Results), len(raws))
	}
	return out.Results
}

func submissionOf(id uint64, raws ...[]byte) []byte {
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = "0x" + hex.EncodeToString(raw)
	}
	body, _ := json.Marshal(map[string]any{"chainId": id, "transactions": texts})
	return body
}

func unmarshal(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// wantProblem checks an answer's status and code.
func wantProblem(t testing.TB, what string, res response, status int, code eventlog.Refusal) rest.Problem {
	t.Helper()
	var p rest.Problem
	if res.status != status || res.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: answered %d %s: %s", what, res.status, res.header.Get("Content-Type"), res.body)
		return p
	}
	unmarshal(t, res.body, &p)
	if p.Code != string(code) || p.Type != "/problems/"+string(code) || p.Status != status || p.RequestID != res.header.Get("X-Request-Id") {
		t.Errorf("%s: want %d %s, answered %s", what, status, code, res.body)
	}
	return p
}

// recorded returns all events of the log.
func (s *stack) recorded() (all []eventlog.Recorded) {
	s.t.Helper()
	for batch, err := range s.db.Log().ReadAll(s.t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, batch.Events...)
	}
	return all
}

// handle executes a command, like the broadcaster and the watcher.
func (s *stack) handle(hash chain.Hash, c tx.Command) {
	s.t.Helper()
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.config.Submit.Transactions.Handle(s.t.Context(), tx.Stream(testChain, hash), c, origin); err != nil {
		s.t.Fatal(err)
	}
}

// newKey makes an account.
func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signed is a signed transaction of type 2, after the given changes.
func signed(t testing.TB, key *ecdsa.PrivateKey, id, nonce uint64, change ...func(*types.DynamicFeeTx)) []byte {
	t.Helper()
	to := common.HexToAddress("0x00000000000000000000000000000000000000Aa")
	inner := &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(id), Nonce: nonce, Gas: 50_000, To: &to, Value: big.NewInt(5),
		GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000_007), Data: []byte{0xca, 0xfe},
	}
	for _, c := range change {
		c(inner)
	}
	signed, err := types.SignNewTx(key, types.LatestSignerForChainID(inner.ChainID), inner)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (r response) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }
