package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// offered lists the offers per unit of gas on a chain, from the log.
func (w *world) offered(t *testing.T, id chain.ID) (fees []chain.Fee) {
	t.Helper()
	for _, r := range w.events(t) {
		if s, err := lane.ParseStream(r.Stream); err == nil && s.Chain == id {
			e, err := lane.Codec().Decode(r.Name, r.Data)
			check(t, err)
			if a, ok := e.(lane.Attempted); ok {
				fees = append(fees, a.Fee)
			}
		}
	}
	return fees
}

// Two chains with different ceilings. While gas costs more than one ceiling, that chain signs
// nothing and the other goes on. Offers are limited to the part of the chain's own ceiling meant
// for intents. On one chain an intent is done at its confirmations, long before finality; on the
// other at finality. The printed configuration shows each chain's values.
func TestCeilingOfEachChain(t *testing.T) {
	t.Parallel()
	all := kinds()
	w := newWorld(t, all[1], inFiles)
	other, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), append(all[0].anvil, "--block-time", "1")...)
	check(t, err)
	t.Cleanup(func() { check(t, other.Remove()) })
	check(t, other.Start(t.Context()))
	const low, high = 100_000_000, 60_000_000_000
	w.dearerAt(t, other.URL(), 10_000_000_000) // with ten times as much on top above its ceiling, however many blocks are empty
	file := filepath.Join(w.dir, "relayer.yaml")
	check(t, os.WriteFile(file, []byte(fmt.Sprintf(`
fee: {ceiling: %d, headrooms: "1000,1000,1000"}
chains:
  - {id: %d, confirmations: 1000, endpoints: [%q], lane: {confirmations: 3, trusted: 3}}
  - {id: %d, confirmations: 2, endpoints: [%q], fee: {ceiling: %d}}
`, high, all[0].id, other.URL(), w.id, w.node.URL(), low)), 0o600))
	w.flags = append(without(w.flags, "--chains=", "--confirmations="), "--config="+file)

	out := w.says(t, 0, fmt.Sprintf("chains[%s].fee.ceiling", w.id), nil, "config", "print", "--origin")
	if !strings.Contains(out, file+":5") || !strings.Contains(out, fmt.Sprint(low)) {
		t.Errorf("the configuration is printed as %s", out)
	}
	s := w.relayer(t)
	w.baseFee(t, 10*low)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	dear := w.one(0, "dear")
	cheap := dear
	cheap.Chain, cheap.Key, cheap.Calls = all[0].id, "cheap", []intent.Call{all[0].pay}
	w.create(t, []client{c}, dear, cheap)
	w.becomes(t, "the other chain has carried out", func() bool {
		w.baseFee(t, 10*low) // it falls with every empty block
		return w.status(t, c, cheap) == intent.StatusCompleted
	})
	w.becomes(t, "it is counted that gas costs too much", func() bool {
		w.baseFee(t, 10*low)
		n, _ := w.figures(t, s).sum("fee_refusals_total", `ceiling="operator"`, `chain="`+w.id.String()+`"`, `reason="market-above-ceiling"`)
		return n > 0
	})
	if got := w.status(t, c, dear); got != intent.StatusWaiting || len(w.offered(t, w.id)) > 0 {
		t.Errorf("with gas above the ceiling it is %s", got)
	}
	w.becomes(t, "gas is cheap enough", func() bool {
		w.baseFee(t, low/2)
		return w.status(t, c, dear) == intent.StatusCompleted
	})
	for want, r := range map[int]intent.Request{3: cheap, 1: dear} {
		if got := c.must(t, http.StatusOK, http.MethodGet, at(r), nil); len(got.Confirmations) != want {
			t.Errorf("%s: %d blocks are told, want %d", r.Key, len(got.Confirmations), want)
		}
	}
	check(t, s.Stop(w.ctx))
	for id, ceiling := range map[chain.ID]uint64{w.id: low, all[0].id: high} {
		fees := w.offered(t, id)
		if len(fees) != 1 || fees[0].MaxFee != chain.PriceOf(ceiling*10/11) {
			t.Errorf("on chain %s %v was offered, the ceiling is %d", id, fees, ceiling)
		}
	}
}

// holding identifies an owner's balance of a token.
type holding struct{ owner, token chain.Address }

// holdings are the signers' balances, in a token's units.
func (w *world) holdings(t *testing.T, alpha chain.Address) map[holding]uint64 {
	t.Helper()
	all := map[holding]uint64{}
	for n := range keys {
		for _, token := range []chain.Address{alpha, wallet.PathUSD} {
			owner := wallet.Dev(n).Address()
			units, err := rig.Balance(w.ctx, w.node.URL(), token, owner)
			check(t, err)
			all[holding{owner, token}] = units
		}
	}
	return all
}

// On Tempo fees are paid in the first token of the policy, or in the intent's token. A sponsored
// sender pays nothing, and the fee payer pays. A token outside the policy is refused before
// anything is recorded.
func TestPaidFor(t *testing.T) {
	t.Parallel()
	payer := wallet.Dev(2).Address()
	alpha, err := chain.ParseAddress("0x20c0000000000000000000000000000000000001")
	check(t, err)
	w := newWorld(t, kinds()[0], inFiles, "--signers-fee-payer="+payer.String(), fmt.Sprintf("--fee-tokens=%s,%s", alpha, wallet.PathUSD))
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	ask := func(key string, signer int, gas map[string]any) string {
		body := map[string]any{"chainId": w.id, "key": key, "signer": wallet.Dev(signer).Address(), "calls": []intent.Call{w.pay}, "gas": gas}
		return "/v1/intents/" + c.must(t, http.StatusAccepted, http.MethodPost, "/v1/intents", body).ID.String()
	}
	for name, want := range map[string]struct {
		signer int
		gas    map[string]any
		payer  chain.Address
		token  chain.Address
	}{
		"itself":    {0, map[string]any{}, wallet.Dev(0).Address(), alpha},
		"in-path":   {0, map[string]any{"feeToken": wallet.PathUSD}, wallet.Dev(0).Address(), wallet.PathUSD},
		"sponsored": {0, map[string]any{"sponsored": true}, payer, alpha},
		"both":      {1, map[string]any{"sponsored": true, "feeToken": wallet.PathUSD}, payer, wallet.PathUSD},
		"the-payer": {2, map[string]any{"sponsored": true}, payer, alpha},
	} {
		before := w.holdings(t, alpha)
		path := ask(name, want.signer, want.gas)
		w.becomes(t, name+" is completed", func() bool {
			var got shown
			status, err := c.do(http.MethodGet, path, nil, &got)
			check(t, err)
			return status == http.StatusOK && got.Status == intent.StatusCompleted
		})
		for held, after := range w.holdings(t, alpha) {
			const sent = 1 // by the intent, apart from the fee
			spent := before[held] - after
			if pays := held == (holding{want.payer, want.token}); pays != (spent > sent) {
				t.Errorf("%s: %s has spent %d of %s", name, held.owner, spent, held.token)
			}
		}
	}
	var problem struct{ Code, Detail string }
	status, err := c.do(http.MethodPost, "/v1/intents", map[string]any{
		"chainId": w.id, "key": "wrong", "signer": payer, "calls": []intent.Call{w.pay}, "gas": map[string]any{"feeToken": to},
	}, &problem)
	if err != nil || status != http.StatusUnprocessableEntity || problem.Code != "intent-not-served" || !strings.Contains(problem.Detail, "fee token") {
		t.Errorf("%d %+v, %v", status, problem, err)
	}
	check(t, s.Stop(w.ctx))
}
