package app

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// Ann's intents ask for lanes of other nonce keys, and these read the chain until her share of the
// node's daily calls is used up. The lane of the protocol's nonce key and bob's lanes still read.
func TestAskedLanesUseTheirClientsShare(t *testing.T) {
	alice := wallet.Dev(0).Address()
	blocks := chaintest.New(chaintest.Options{Chain: onTempo, Decode: delivery.Decode})
	defer blocks.Close()
	server := httptest.NewServer(blocks.Node("a"))
	defer server.Close()
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: onTempo, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL, Budget: rpc.Budget{Daily: 200}}}})
	must(t, err)
	defer pool.Close()
	s := resolved(t, "--signers-allowed="+list(alice), "--signers-environment", "--pools=hot="+list(alice))
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ring, closeKeys, err := openKeys(t.Context(), s.Signers, []string{variable}, log)
	must(t, err)
	defer closeKeys()
	n := nodeOf(s, onTempo, pool)
	c := &served{relay: &relay{settings: s, ring: ring}, node: n, Relayer: &worker.Relayer{Chain: onTempo, Node: n}}
	looks := func(client string, key byte) error {
		l := c.lane(alice, chain.NonceKey{31: key}, client)
		node := l.Node
		if l.Behalf != nil {
			node = l.Behalf(client)
		}
		_, err := node.Next(t.Context(), l.ID, false)
		return err
	}
	hers := 0
	for looks("ann", 1) == nil {
		if hers++; hers == 200 {
			t.Fatal("her lanes have read 200 times")
		}
	}
	if hers < 10 {
		t.Errorf("her lanes have read %d times", hers)
	}
	must(t, looks("bob", 2))
	for range 10 {
		must(t, looks("", 0))
	}
}
