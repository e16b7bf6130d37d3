package main_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// soldOut is the address of a contract that does nothing when called without data, and otherwise
// reverts with Error("sold out").
var soldOut = chain.Address{0: 0x50, 19: 0x1d}

// contract is its code: calldatasize iszero jumpi(15); codecopy(0, 17, 100) revert(0, 100); 15:
// jumpdest stop; 17: the reason.
func contract() string {
	reason := fmt.Sprintf("08c379a0%064x%064x%s%s", 32, len("sold out"), hex.EncodeToString([]byte("sold out")), strings.Repeat("00", 24))
	return "0x3615600f57" + "606460115f39" + "60645ffd" + "5b00" + reason
}

// An intent that asks for simulation and would revert fails with the contract's own reason, and
// takes no nonce; a successful one is carried out. Without simulation a reverting
// transaction is mined, and uses up a nonce.
func TestSimulatedFirst(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles)
			check(t, rig.Call(w.ctx, w.node.URL(), new(any), "anvil_setCode", soldOut, contract()))
			from := w.wants(t, wallet.Dev(0).Address())
			s := w.relayer(t)
			check(t, s.Start(w.ctx))
			c := w.client(t, s)
			ask := func(key, data string, gas uint64, simulate bool) string {
				t.Helper()
				body := map[string]any{"chainId": w.id, "key": key, "signer": wallet.Dev(0).Address(), "to": soldOut, "data": data, "simulate": simulate, "gas": map[string]any{}}
				if gas > 0 {
					body["gas"] = map[string]any{"limit": gas}
				}
				return "/v1/intents/" + c.must(t, http.StatusAccepted, http.MethodPost, "/v1/intents", body).ID.String()
			}
			type ended struct {
				Status  intent.Status
				Place   *struct{ Nonce uint64 }
				Outcome struct {
					Reason intent.Reason
					Detail string
				}
				Attempts []any
			}
			becomes := func(path string, want intent.Status) (e ended) {
				t.Helper()
				w.becomes(t, path+" has come out", func() bool {
					e = ended{}
					status, err := c.do(http.MethodGet, path, nil, &e)
					check(t, err)
					return status == http.StatusOK && (e.Status == intent.StatusFailed || e.Status == intent.StatusCompleted)
				})
				if e.Status != want {
					t.Errorf("%s is %s: %+v", path, e.Status, e)
				}
				return e
			}

			var refused []string
			for key, gas := range map[string]uint64{"tried": gasEnough, "estimated": 0} {
				path := ask(key, "0x01", gas, true)
				refused = append(refused, path)
				e := becomes(path, intent.StatusFailed)
				if e.Outcome.Reason != intent.Simulation || !strings.Contains(e.Outcome.Detail, "sold out") || e.Place != nil || len(e.Attempts) > 0 {
					t.Errorf("%s: %+v", key, e)
				}
			}
			if now := w.wants(t, wallet.Dev(0).Address()); now != from {
				t.Errorf("the chain wants nonce %d, and wanted %d", now, from)
			}
			good := becomes(ask("good", "0x", gasEnough, true), intent.StatusCompleted)
			bad := becomes(ask("untried", "0x01", gasEnough, false), intent.StatusFailed)
			if bad.Outcome.Reason != intent.Reverted || good.Place == nil || bad.Place == nil || good.Place.Nonce != from || bad.Place.Nonce != from+1 {
				t.Errorf("%+v, %+v", good, bad)
			}
			// Its client is notified once.
			var trail struct {
				Events []struct{ Type string }
			}
			if status, err := c.do(http.MethodGet, refused[0]+"/events", nil, &trail); err != nil || status != http.StatusOK || len(trail.Events) != 1 || trail.Events[0].Type != "TxFailed" {
				t.Errorf("it is told %d %+v, %v", status, trail, err)
			}
			check(t, s.Stop(w.ctx))
		})
	}
}
