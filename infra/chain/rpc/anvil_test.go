package rpc

import (
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// devKey is the first of the private keys whose accounts every anvil funds.
const devKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

// anvil starts a node and opens a pool of it.
func anvil(t *testing.T, args ...string) *Pool {
	t.Helper()
	binary := testenv.Need(t, testenv.AnvilVar)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() //nolint:errcheck // the port is free again
	args = append(args, "--chain-id", id.String(), "--host", "127.0.0.1", "--port", port, "--no-mining", "--slots-in-an-epoch", "1")
	cmd := exec.Command(binary, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may be gone
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	p := open(t, func(c *Config) {
		c.Poll, c.PollSubscribed, c.DeriveWebSocket = time.Hour, time.Hour, true
		c.CallTimeout, c.SendTimeout = 10*time.Second, 10*time.Second
	}, "http://127.0.0.1:"+port)
	for deadline := time.Now().Add(30 * time.Second); len(p.Endpoints()) == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("anvil does not answer: %+v", p.Status())
		}
		p.probe(t.Context(), p.endpoints[0])
		<-time.After(20 * time.Millisecond)
	}
	return p
}

// control calls one of anvil's own methods.
func control(t *testing.T, p *Pool, result any, method string, params ...any) {
	t.Helper()
	replies, err := p.ask(t.Context(), p.endpoints[0], 10*time.Second, maxBlockReply, call{method, params})
	if err == nil {
		err = replies[0].into(result)
	}
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

type vector struct {
	Name, Raw, Sender string
	Hash              *chain.Hash
	NonceKey          chain.NonceKey
}

func vectors(t *testing.T) map[string]vector {
	t.Helper()
	text, err := os.ReadFile("../tempo/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []json.RawMessage
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	named := map[string]vector{}
	for _, text := range file.Vectors {
		var v vector
		if json.Unmarshal(text, &v) == nil { // some vectors hold no nonce key on purpose
			named[v.Name] = v
		}
	}
	return named
}

func (v vector) bytes(t *testing.T) ([]byte, chain.Hash) {
	t.Helper()
	raw, err := hex.DecodeString(strings.TrimPrefix(v.Raw, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	if v.Hash == nil {
		return raw, chain.Keccak(raw)
	}
	return raw, *v.Hash
}

func sendOne(t *testing.T, p *Pool, raw []byte, hash chain.Hash) tx.Answer {
	t.Helper()
	return p.Send(t.Context(), raw, hash, 0, tx.Sending{})[0]
}

func TestAnvilRunsTempo(t *testing.T) {
	p := anvil(t, "--network", "tempo", "--hardfork", "T4")
	r, ctx, named := p.Reader(), t.Context(), vectors(t)
	genesis, err := r.Head(ctx)
	if err != nil || genesis.Number != 0 {
		t.Fatalf("head %+v %v", genesis, err)
	}
	signals := r.Heads(ctx)
	await(t, signals, "at the start")

	sender, err := chain.ParseAddress(named["secp-2d"].Sender)
	if err != nil {
		t.Fatal(err)
	}
	fund(t, p, sender)
	await(t, signals, "the subscription, or the block that pays the sender")

	var hashes []chain.Hash
	for _, name := range []string{"secp-basic", "secp-2d", "nkg1-mixed", "v-0-1"} {
		raw, hash := named[name].bytes(t)
		if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
			t.Fatalf("%s: %+v", name, got)
		}
		if got := sendOne(t, p, raw, hash); got.Class != tx.Known {
			t.Errorf("%s again: %+v", name, got)
		}
		hashes = append(hashes, hash)
	}
	before, err := r.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	await(t, signals, "a block")
	checkAnvilBlock(t, r, before, sender, hashes)

	for name, want := range map[string]tx.Answer{
		"mainnet":      {Class: tx.Permanent},
		"policy-value": {Class: tx.Permanent},
		"valid-after":  {Class: tx.Retry, Cause: tx.TooEarly},
		"p256":         {Class: tx.Retry, Cause: tx.Funds}, // its sender has no funds
	} {
		raw, hash := named[name].bytes(t)
		if got := sendOne(t, p, raw, hash); got.Class != want.Class || got.Cause != want.Cause {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := sendOne(t, p, []byte{0x76, 0xc0}, chain.Hash{}); got.Class != tx.Permanent {
		t.Errorf("rubbish: %+v", got)
	}
}

// checkAnvilBlock reads the block that anvil has just mined by every read method.
func checkAnvilBlock(t *testing.T, r *Reader, before chain.Block, sender chain.Address, hashes []chain.Hash) {
	t.Helper()
	ctx := t.Context()
	head, err := r.Head(ctx)
	if err != nil || head.Parent != before.Hash {
		t.Fatalf("head %+v %v", head, err)
	}
	_, held, err := r.BlockByHash(ctx, head.Hash)
	if err != nil || len(held.Hashes) != len(hashes) {
		t.Fatalf("block holds %v %v", held, err)
	}
	for sequence, next := range held.Used {
		wanted, err := r.Nonces(ctx, head, []chain.Sequence{sequence})
		if err != nil || wanted[0] != next || sequence.Sender != sender {
			t.Errorf("the block says that %+v goes on at %d, the chain %v, %v", sequence, next, wanted, err)
		}
	}
	if len(held.Used) != len(hashes) {
		t.Errorf("the block used nonces in %d sequences, want %d", len(held.Used), len(hashes))
	}
	for _, asked := range [][]chain.Hash{hashes, hashes[1:2], {hashes[0], {1}}} {
		receipts, err := r.Receipts(ctx, head, asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range asked {
			got, ok := receipts[hash]
			if ok != slices.Contains(hashes, hash) {
				t.Errorf("receipt of %s: %v", hash, ok)
			}
			if ok && (got.Status != 1 || got.Block != head || got.GasUsed == 0 || got.EffectiveGasPrice == "" || got.FeePayer == nil || *got.FeePayer != sender) {
				t.Errorf("receipt of %s: %+v", hash, got)
			}
		}
	}
	sequences := []chain.Sequence{
		{Chain: id, Sender: sender}, {Chain: id, Sender: sender, Key: key5},
		{Chain: id, Sender: sender, Key: chain.NonceKey{31: 0x77}}, {Chain: id, Sender: sender, Key: chain.ExpiringKey},
	}
	if got, err := r.Nonces(ctx, head, sequences); err != nil || !slices.Equal(got, []uint64{1, 1, 0, 0}) {
		t.Errorf("nonces after: %v %v", got, err)
	}
	if got, err := r.Nonces(ctx, before, sequences); err != nil || !slices.Equal(got, []uint64{0, 0, 0, 0}) {
		t.Errorf("nonces before: %v %v", got, err)
	}
	if got, err := r.Nonces(ctx, chain.Block{Number: head.Number, Hash: chain.Hash{1}}, sequences); err == nil {
		t.Errorf("nonces at a block that does not exist: %v", got)
	}
	if got, err := r.FindReceipt(ctx, hashes[1], chain.Block{}); err != nil || got == nil || got.Block != head {
		t.Errorf("receipt %+v %v", got, err)
	}
	if got, err := r.FindReceipt(ctx, chain.Hash{1}, chain.Block{}); err != nil || got != nil {
		t.Errorf("receipt %+v %v", got, err)
	}
	if final, err := r.Final(ctx, head); err != nil || final.Number >= head.Number {
		t.Errorf("final %+v %v", final, err)
	}
}

// fund pays fee tokens to an account from one of anvil's own accounts.
func fund(t *testing.T, p *Pool, to chain.Address) {
	t.Helper()
	var accounts []chain.Address
	control(t, p, &accounts, "eth_accounts")
	input := "0xa9059cbb" + fmt.Sprintf("%064x%064x", to[:], 1_000_000_000_000)
	for _, token := range []string{
		"0x20c0000000000000000000000000000000000000", "0x20c0000000000000000000000000000000000001",
	} {
		control(t, p, new(chain.Hash), "eth_sendTransaction", map[string]any{
			"from": accounts[0], "to": token, "data": input, "gas": "0x1e8480",
		})
	}
	control(t, p, new(json.RawMessage), "evm_mine")
}

func TestAnvilReorganises(t *testing.T) {
	p := anvil(t)
	r, ctx := p.Reader(), t.Context()
	raw, hash := signed(t, devKey, 0, nil)
	if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
		t.Fatalf("%+v", got)
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	control(t, p, new(json.RawMessage), "evm_mine")
	found, err := r.FindReceipt(ctx, hash, chain.Block{})
	if err != nil || found == nil {
		t.Fatalf("receipt %+v %v", found, err)
	}
	control(t, p, new(json.RawMessage), "anvil_reorg", 2, []any{})
	if got, err := r.FindReceipt(ctx, hash, chain.Block{}); err != nil || got != nil {
		t.Errorf("receipt %+v %v", got, err)
	}
	if now, _, err := r.BlockAt(ctx, found.Block.Number); err != nil || now.Hash == found.Block.Hash {
		t.Errorf("block %+v %v", now, err)
	}
	if got, err := r.Receipts(ctx, found.Block, []chain.Hash{hash}); err == nil {
		t.Errorf("receipts of a block that is gone: %v", got)
	}
	if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
		t.Errorf("sent again: %+v", got)
	}
}

// TestAnvilRefuses asks a real node for its error texts.
func TestAnvilRefuses(t *testing.T) {
	p := anvil(t)
	raw, hash := signed(t, devKey, 0, nil)
	if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
		t.Fatalf("%+v", got)
	}
	for _, test := range []struct {
		name   string
		key    string
		nonce  uint64
		change func(*types.DynamicFeeTx)
		class  tx.Class
		cause  tx.Cause
	}{
		{"replacement at a lower price", devKey, 0, func(d *types.DynamicFeeTx) { d.GasFeeCap = big.NewInt(1_500_000_000); d.GasTipCap = big.NewInt(1) }, tx.Retry, tx.Underpriced},
		{"no money", strings.Repeat("12", 32), 0, nil, tx.Retry, tx.Funds},
		{"below the base fee", devKey, 1, func(d *types.DynamicFeeTx) { d.GasFeeCap = big.NewInt(1); d.GasTipCap = big.NewInt(1) }, tx.Retry, tx.Fee},
		{"tip above fee", devKey, 1, func(d *types.DynamicFeeTx) { d.GasTipCap = big.NewInt(9e18) }, tx.Permanent, ""},
		{"too little gas", devKey, 1, func(d *types.DynamicFeeTx) { d.Gas = 20_000 }, tx.Permanent, ""},
		{"too much gas", devKey, 1, func(d *types.DynamicFeeTx) { d.Gas = 1 << 40 }, tx.Permanent, ""},
		{"another chain", devKey, 1, func(d *types.DynamicFeeTx) { d.ChainID = big.NewInt(1) }, tx.Permanent, ""},
		{"a gap", devKey, 9, nil, tx.Taken, ""},
	} {
		raw, hash := signed(t, test.key, test.nonce, test.change)
		if got := sendOne(t, p, raw, hash); got.Class != test.class || got.Cause != test.cause {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	if got := sendOne(t, p, raw, hash); got.Class != tx.Retry || got.Cause != tx.NonceTooLow {
		t.Errorf("a used nonce: %+v", got)
	}
}

// signed is a signed transaction of value 0.
func signed(t *testing.T, key string, nonce uint64, change func(*types.DynamicFeeTx)) ([]byte, chain.Hash) {
	t.Helper()
	secret, err := crypto.HexToECDSA(key)
	if err != nil {
		t.Fatal(err)
	}
	data := &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(uint64(id)), Nonce: nonce, Gas: 21_000, To: &common.Address{1},
		GasFeeCap: big.NewInt(5_000_000_000), GasTipCap: big.NewInt(1_000_000_000),
	}
	if change != nil {
		change(data)
	}
	return encodeSigned(t, data, secret)
}

func encodeSigned(t *testing.T, data *types.DynamicFeeTx, secret *ecdsa.PrivateKey) ([]byte, chain.Hash) {
	t.Helper()
	transaction, err := types.SignNewTx(secret, types.LatestSignerForChainID(data.ChainID), data)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := transaction.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw, chain.Hash(transaction.Hash())
}
