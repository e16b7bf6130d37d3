package worker

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// devnode is an anvil that mines on command, and an estimator that reads it.
type devnode struct {
	t   *testing.T
	url string
	Estimator
	signer, payer *keys.Signer // the first two funded accounts
}

func newDevnode(t *testing.T, kind uint8, change func(*fee.Policy, *devnode), args ...string) *devnode {
	t.Helper()
	binary := testenv.Need(t, testenv.AnvilVar)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close()) // the port is free again
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	cmd := exec.Command(binary, append(args, "--chain-id", fmt.Sprint(moderato), "--host", "127.0.0.1", "--port", port, "--no-mining")...)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may be gone
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	signers, err := keys.Environment([]string{secret, "RELAYER_PRIVATE_KEY_1=59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}, true, slog.New(slog.DiscardHandler))
	must(t, err)
	d := &devnode{t: t, url: "http://" + address, signer: signers[0], payer: signers[1]}
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			must(t, conn.Close())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	pool, err := rpc.Open(t.Context(), rpc.Config{
		Chain: moderato, Endpoints: []rpc.Endpoint{{URL: d.url}}, Probe: time.Hour,
		CallTimeout: 20 * time.Second, HeadTimeout: 20 * time.Second,
	})
	must(t, err)
	t.Cleanup(pool.Close)
	policy := fee.Default()
	if change != nil {
		change(&policy, d)
	}
	must(t, policy.Check())
	reader := pool.Reader()
	d.Estimator = Estimator{Chain: moderato, Type: kind, Policy: policy, Trials: reader, Market: fresh{reader, policy}}
	return d
}

// fresh is a market that is read again for each offer: the node's blocks come on command,
// not once a second.
type fresh struct {
	*rpc.Reader
	policy fee.Policy
}

func (f fresh) Market(ctx context.Context) (chain.Market, error) {
	return f.Reader.Market(5, f.policy.Percentiles()...).Market(ctx)
}

// ask calls a method of the node and returns the node's error.
func (d *devnode) ask(result any, method string, params ...any) error {
	d.t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	must(d.t, err)
	response, err := http.Post(d.url, "application/json", bytes.NewReader(body))
	must(d.t, err)
	defer response.Body.Close() //nolint:errcheck // it was read
	var reply struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	must(d.t, json.NewDecoder(response.Body).Decode(&reply))
	if reply.Error != nil {
		return errors.New(reply.Error.Message)
	}
	if result != nil {
		must(d.t, json.Unmarshal(reply.Result, result))
	}
	return nil
}

func (d *devnode) send(raw []byte) error {
	return d.ask(nil, "eth_sendRawTransaction", "0x"+hex.EncodeToString(raw))
}

// receipt returns the node's receipt of a transaction; nil if it is in no block.
func (d *devnode) receipt(hash chain.Hash) (r *struct{ Status, GasUsed, EffectiveGasPrice string }) {
	d.t.Helper()
	must(d.t, d.ask(&r, "eth_getTransactionReceipt", hash))
	return r
}

func number(t *testing.T, text string) *uint256.Int {
	t.Helper()
	if digits := strings.TrimLeft(strings.TrimPrefix(text, "0x"), "0"); digits != "" {
		n, err := uint256.FromHex("0x" + digits)
		must(t, err)
		return n
	}
	return new(uint256.Int)
}

// The base fee rises above the offers. A real node accepts each bump in place of the
// previous attempt, up to the ceiling, and mines the last one when the base fee has fallen.
func TestAnvilTakesBumps(t *testing.T) {
	d := newDevnode(t, ethereum.DynamicFee, func(p *fee.Policy, _ *devnode) { p.Ceiling = chain.PriceOf(6_000_000_000) })
	var terms fee.Terms
	var last chain.Signed
	var raw []byte
	bumps := 0
	for ; ; bumps++ {
		offer, err := d.Offer(t.Context(), terms)
		if errors.Is(err, fee.ErrCeiling) {
			break
		}
		must(t, err)
		tx := chain.Unsigned{Type: ethereum.DynamicFee, Chain: moderato, Gas: 21_000, Calls: []chain.Call{{To: &chain.Address{9}}}}
		offer.Put(&tx)
		payload, err := ethereum.Payload(tx)
		must(t, err)
		mark, err := d.signer.Sign(t.Context(), payload)
		must(t, err)
		raw, err = ethereum.Encode(tx, mark)
		must(t, err)
		last, err = ethereum.Decode(raw)
		must(t, err)
		if err := d.send(raw); err != nil {
			t.Fatalf("bump %d to %s and %s: %v", bumps, offer.Fee.MaxFee, offer.Fee.MaxPriorityFee, err)
		}
		terms.Replaces = &offer.Fee
	}
	if bumps < 3 {
		t.Errorf("%d bumps, up to %s", bumps, terms.Replaces.MaxFee)
	}
	must(t, d.ask(nil, "anvil_setNextBlockBaseFeePerGas", "0x1dcd65000")) // 8 gwei
	must(t, d.ask(nil, "evm_mine"))
	if r := d.receipt(last.Hash); r != nil {
		t.Errorf("mined below the base fee: %+v", r)
	}
	if got, err := d.Offer(t.Context(), fee.Terms{}); !errors.Is(err, fee.ErrMarket) {
		t.Errorf("above the ceiling: %+v, %v", got, err)
	}
	must(t, d.ask(nil, "anvil_setNextBlockBaseFeePerGas", "0x3b9aca00")) // 1 gwei
	must(t, d.ask(nil, "evm_mine"))
	if err := d.send(raw); err != nil && !strings.Contains(err.Error(), "already imported") { // as delivery does
		t.Error(err)
	}
	must(t, d.ask(nil, "evm_mine"))
	if r := d.receipt(last.Hash); r == nil || r.Status != "0x1" || number(t, r.EffectiveGasPrice).Gt(terms.Replaces.MaxFee.Int()) {
		t.Errorf("%+v", r)
	}
}

// On Tempo a sponsor pays in a token of the policy: the node takes the amount that is
// computed here, and no more than was offered.
func TestAnvilSponsors(t *testing.T) {
	token, err := chain.ParseAddress("0x20c0000000000000000000000000000000000001")
	must(t, err)
	d := newDevnode(t, tempo.Type, func(p *fee.Policy, d *devnode) {
		sponsor := d.payer.Address()
		p.Tokens, p.Sponsor = []chain.Address{token}, &sponsor
	}, "--network", "tempo", "--hardfork", "T4")
	balance := func() *uint256.Int {
		var text string
		owner := d.payer.Address()
		must(t, d.ask(&text, "eth_call", map[string]any{"to": token, "data": "0x70a08231" + strings.Repeat("0", 24) + hex.EncodeToString(owner[:])}, "latest"))
		return number(t, text)
	}
	lane := chain.Sequence{Chain: moderato, Sender: d.signer.Address(), Key: chain.NonceKey{31: 5}}
	gas, err := d.Gas(t.Context(), lane, intent.Request{Calls: []intent.Call{{To: &chain.Address{9}}}})
	must(t, err)
	offer, err := d.Offer(t.Context(), fee.Terms{Sender: lane.Sender, Sponsored: true})
	must(t, err)
	tx := chain.Unsigned{Type: tempo.Type, Chain: moderato, NonceKey: lane.Key, Gas: gas, Calls: []chain.Call{{To: &chain.Address{9}}}}
	offer.Put(&tx)
	payload, err := tempo.Payload(tx)
	must(t, err)
	mark, err := d.signer.Sign(t.Context(), payload)
	must(t, err)
	payload, err = tempo.PayerPayload(tx, lane.Sender)
	must(t, err)
	payers, err := d.payer.Sign(t.Context(), payload)
	must(t, err)
	raw, err := tempo.Encode(tx, mark, payers)
	must(t, err)
	signed, err := tempo.Decode(raw)
	must(t, err)
	before := balance()
	must(t, d.send(raw))
	must(t, d.ask(nil, "evm_mine"))
	r := d.receipt(signed.Hash)
	if r == nil || r.Status != "0x1" || signed.FeePayer == nil || *signed.FeePayer != *offer.Payer {
		t.Fatalf("%+v, paid for by %v", r, signed.FeePayer)
	}
	price, used := number(t, r.EffectiveGasPrice), number(t, r.GasUsed)
	paid := new(uint256.Int).Sub(before, balance())
	if want := fee.TokenCost(new(uint256.Int).Mul(price, used)); !paid.Eq(want) {
		t.Errorf("%s gas at %s cost %s units, %s were reckoned", used, price, paid, want)
	}
	if most := fee.TokenCost(fee.Cost(gas, offer.Fee)); paid.Gt(most) || paid.IsZero() {
		t.Errorf("%s were paid, at most %s were to be", paid, most)
	}
}
