package delivery

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// withChain gives the stack a chain with one node to ask.
func withChain(t testing.TB) (*chaintest.Chain, *chaintest.Node, func(*Config)) {
	t.Helper()
	c := chaintest.New(chaintest.Options{Chain: testChain, Decode: decode})
	t.Cleanup(c.Close)
	node := c.Node("a")
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: testChain, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return c, node, func(config *Config) {
		config.Stale = staleBy(config, pool.Reader())
	}
}

// staleBy returns the functions that ask a chain about used nonces in a client's name.
func staleBy(config *Config, r *rpc.Reader) map[chain.ID]func(context.Context, string, chain.Hash, eventlog.Meta) (tx.State, error) {
	w := &watcher.Watcher{
		Chain: testChain, Node: r, Transactions: config.Submit.Transactions,
		Now: config.Now, Log: config.Log,
	}
	return map[chain.ID]func(context.Context, string, chain.Hash, eventlog.Meta) (tx.State, error){
		testChain: func(ctx context.Context, client string, hash chain.Hash, meta eventlog.Meta) (tx.State, error) {
			return w.Stale(ctx, r.OnBehalf(client), hash, meta)
		},
	}
}

func (s *stack) delete(target string) response {
	s.t.Helper()
	return s.do("DELETE", "/v1/transactions/"+target, nil)
}

func TestDeleteOnceTheNonceIsUsed(t *testing.T) {
	c, node, withStale := withChain(t)
	s := newStack(t, withStale)
	key := newKey(t)
	raw, rival := signed(t, key, testChain, 0), signed(t, key, testChain, 0, func(inner *types.DynamicFeeTx) { inner.Gas++ })
	hash := s.submit(raw)[0].TxHash
	s.catchUp()

	p := wantProblem(t, "nonce still free", s.delete(hash.String()), 400, tx.ErrNonceCurrent)
	if p.Detail != "the chain's next nonce is 0, this is 0" {
		t.Errorf("detail: %q", p.Detail)
	}
	if _, err := c.Mine(rival); err != nil {
		t.Fatal(err)
	}
	node.Set(chaintest.Faults{Down: true})
	res := s.delete(hash.String())
	if p := wantProblem(t, "chain away", res, 503, chainUnavailable); !p.Retryable || res.header.Get("Retry-After") == "" {
		t.Errorf("chain away: %v", res)
	}
	if n := len(s.recorded()); n != 1 {
		t.Errorf("%d events before the chain could be asked", n)
	}
	node.Set(chaintest.Faults{})
	for range 2 {
		res := s.delete(hash.String() + "?chainId=42431")
		if res.status != 200 || !bytes.Contains(res.body, []byte(`"status":"stale_by_nonce"`)) {
			t.Errorf("nonce used: %v", res)
		}
	}
	if all := s.recorded(); len(all) != 2 || all[1].Meta.Actor != "api" || all[1].Meta.Correlation.IsZero() {
		t.Errorf("recorded %+v", all)
	}
	// A client reads its own change at once, though the read model lags.
	wantMembers(t, s.one(hash), map[string]string{"status": `"stale_by_nonce"`, "version": "2"})
}

func TestDeleteOfWhatIsMined(t *testing.T) {
	c, _, withStale := withChain(t)
	s := newStack(t, withStale)
	raw := signed(t, newKey(t), testChain, 0)
	hash := s.submit(raw)[0].TxHash
	if _, err := c.Mine(raw); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := wantProblem(t, "mined", s.delete(hash.String()), 409, tx.ErrSettled); p.Detail != "it is executed" {
			t.Errorf("detail: %q", p.Detail)
		}
	}
	wantMembers(t, s.one(hash), map[string]string{"status": `"executed"`, "version": "2"})
}

func TestDeleteFindsTheTransaction(t *testing.T) {
	_, _, withStale := withChain(t)
	s := newStack(t, withStale)
	unknown := strings.Repeat("ab", 32)
	wantProblem(t, "unknown", s.delete("0x"+unknown), 404, tx.ErrUnknown)
	wantProblem(t, "no hash", s.delete("0x12"), 400, ErrInvalidHash)
	wantProblem(t, "strange parameter", s.delete("0x"+unknown+"?chain=1"), 400, rest.ErrInvalidFilter)

	// A hash on two chains needs a broken hash function, or two chains with one id.
	raw := signed(t, newKey(t), testChain, 0)
	hash := s.submit(raw)[0].TxHash
	s.accept(1, hash)
	p := wantProblem(t, "on two chains", s.delete(hash.String()), 400, ErrAmbiguousChain)
	if !strings.Contains(p.Detail, "[1 42431]") {
		t.Errorf("detail: %q", p.Detail)
	}
	wantProblem(t, "on one of two", s.delete(hash.String()+"?chainId=42431"), 400, tx.ErrNonceCurrent)
	wantProblem(t, "on a chain that cannot be asked", s.delete(hash.String()+"?chainId=1"), 422, commands.ErrUnsupportedChain)
	wantProblem(t, "on another chain", s.delete(hash.String()+"?chainId=4217"), 404, tx.ErrUnknown)
}

// accept records a hash as accepted on a chain, without bytes.
func (s *stack) accept(id chain.ID, hash chain.Hash) {
	s.t.Helper()
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	accepted := tx.Accepted{Chain: id, Hash: hash, At: testTime}
	if _, err := s.config.Submit.Transactions.Handle(s.t.Context(), tx.Stream(id, hash), tx.Accept{Accepted: accepted}, origin); err != nil {
		s.t.Fatal(fmt.Errorf("accept: %w", err))
	}
}
