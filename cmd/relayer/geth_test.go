package main_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// On a chain of go-ethereum, with its pool and its messages, intents of a pool are carried out.
// One is sped up, and the dearer attempt replaces the first. One is canceled, and the no-op
// replaces its transaction.
func TestGeth(t *testing.T) {
	t.Parallel()
	var rich []chain.Address
	for n := range keys {
		rich = append(rich, wallet.Dev(n).Address())
	}
	node, err := server.NewGeth(testenv.Need(t, testenv.GethVar), 3, rich...)
	check(t, err)
	t.Cleanup(func() { check(t, node.Remove()) })
	check(t, node.Start(t.Context()))
	k := kinds()[1]
	k.id = server.GethChain
	w := newWorldOn(t, k, node, inFiles, "--lane-stall=1h")
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	w.create(t, []client{c}, w.forPool(12, "pool")...)
	w.done(t, s)
	w.replaced(t, c, "sped-up", intent.Bump, "/speed-up", map[string]string{"feePerGas": "200000000000"})
	w.replaced(t, c, "withdrawn", intent.NoOp, "/cancel", map[string]string{"reason": "mistake"})
	check(t, s.Stop(w.ctx))
	w.judge(t)
}

// replacedMax limits the intents that may be mined before their replacement.
const replacedMax = 20

// replaced submits intents one after the other, each followed by the command, until a block has
// the replacement instead of the first attempt.
func (w *world) replaced(t *testing.T, c client, what string, kind intent.AttemptKind, path string, body map[string]string) {
	t.Helper()
	for n := range replacedMax {
		r := w.one(0, fmt.Sprint(what, "-", n))
		w.create(t, []client{c}, r)
		w.becomes(t, "the node has it", func() bool {
			got := c.must(t, http.StatusOK, http.MethodGet, at(r), nil)
			var known *struct{ Hash chain.Hash }
			if len(got.Attempts) > 0 {
				check(t, rig.Call(w.ctx, w.node.URL(), &known, "eth_getTransactionByHash", got.Attempts[0].TxHash.String()))
			}
			return known != nil
		})
		var ignored struct{ Code string } // the intent may be mined already
		_, err := c.do(http.MethodPost, at(r)+path, body, &ignored)
		check(t, err)
		var got shown
		w.becomes(t, "it has come out", func() bool {
			got = c.must(t, http.StatusOK, http.MethodGet, at(r), nil)
			return got.Outcome != nil && got.Outcome.TxHash != nil && got.Status != intent.StatusMined
		})
		last := got.Attempts[len(got.Attempts)-1]
		if len(got.Attempts) == 2 && last.Kind == kind && *got.Outcome.TxHash == last.TxHash {
			if first := got.Attempts[0]; !least(first.MaxFee, last.MaxFee) {
				t.Errorf("%s: %s is listed after %s", what, last.MaxFee, first.MaxFee)
			}
			w.canceled[r.ID()] = kind == intent.NoOp
			if kind != intent.NoOp {
				delete(w.canceled, r.ID())
			}
			return
		}
	}
	t.Errorf("%s: blocks came first %d times", what, replacedMax)
}

// least reports whether a fee exceeds another by at least a pool's minimum for replacement.
func least(fee, over chain.Amount) bool {
	return fee != chain.Amount{} && !over.Times(100).Int().Lt(fee.Times(110).Int())
}
