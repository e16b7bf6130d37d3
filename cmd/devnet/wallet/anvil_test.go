package wallet_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// node is a chain that mines each transaction at once.
type node struct {
	t   *testing.T
	url string
}

func startAnvil(t *testing.T, flags ...string) node {
	t.Helper()
	a, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return node{t, a.URL()}
}

func (n node) call(method string, result any, params ...any) {
	n.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		n.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	answer := struct {
		Result any
		Error  *struct{ Message string }
	}{Result: result}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		n.t.Fatal(err)
	}
	if answer.Error != nil {
		n.t.Fatalf("%s: %s", method, answer.Error.Message)
	}
}

// executes fails the test unless the chain mines the bytes successfully, with the expected hash
// and sender.
func (n node) executes(what string, raw []byte, sender chain.Address) {
	n.t.Helper()
	var hash chain.Hash
	n.call("eth_sendRawTransaction", &hash, "0x"+hex.EncodeToString(raw))
	if hash != chain.Keccak(raw) {
		n.t.Errorf("%s: the chain calls it %s, want %s", what, hash, chain.Keccak(raw))
	}
	var receipt *struct {
		Status string
		From   chain.Address
	}
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for receipt == nil {
		n.call("eth_getTransactionReceipt", &receipt, hash)
		select {
		case <-deadline.C:
			n.t.Fatalf("%s: not mined", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if receipt.Status != "0x1" || receipt.From != sender {
		n.t.Errorf("%s: status %s from %s, want 0x1 from %s", what, receipt.Status, receipt.From, sender)
	}
}

func TestTempoChainExecutes(t *testing.T) {
	n := startAnvil(t, server.TempoFlags()...)
	rich := wallet.Dev(0)
	poor, err := wallet.NewP256([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	tx := wallet.Tempo{
		Chain: 42431, MaxFee: 40e9, MaxPriorityFee: 1e9, Gas: 2_000_000,
		Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, poor.Address(), 10_000_000)},
	}
	n.executes("the account's nonce", tx.Sign(rich), rich.Address())
	tx.NonceKey, tx.FeeToken = chain.NonceKey{31: 5}, &wallet.PathUSD
	n.executes("another nonce key", tx.Sign(rich), rich.Address())
	tx.Nonce, tx.Window.Before = 1, uint64(time.Now().Add(time.Hour).Unix())
	n.executes("its next nonce", tx.Sign(rich), rich.Address())
	tx.NonceKey, tx.Nonce = chain.NonceKey{}, 0
	tx.Calls = []chain.Call{wallet.Transfer(wallet.PathUSD, rich.Address(), 1)}
	n.executes("a P-256 key", tx.Sign(poor), poor.Address())
}

func TestEthereumChainExecutes(t *testing.T) {
	n := startAnvil(t, "--chain-id", "31337")
	key, to := wallet.Dev(1), wallet.Dev(2).Address()
	n.executes("type 2", wallet.Ethereum{
		Chain: 31337, MaxFee: 40e9, MaxPriorityFee: 1e9, Gas: 21_000,
		Call: chain.Call{To: &to, Value: uint256.NewInt(1)},
	}.Sign(key), key.Address())
}
