package rpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// outOfFunds is Error("out of funds") as contracts encode it.
const outOfFunds = "08c379a0" +
	"0000000000000000000000000000000000000000000000000000000000000020" +
	"000000000000000000000000000000000000000000000000000000000000000c" +
	"6f7574206f662066756e64730000000000000000000000000000000000000000"

func wanted(kind uint8, to ...chain.Address) chain.Unsigned {
	tx := chain.Unsigned{Type: kind, Chain: id, Gas: 90_000}
	for _, a := range to {
		tx.Calls = append(tx.Calls, chain.Call{To: &a, Value: uint256.NewInt(1), Input: []byte{1, 2}})
	}
	return tx
}

func TestTrials(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		p, _, _, c := stalls(t, n, nil)
		reason, err := hex.DecodeString(outOfFunds)
		if err != nil {
			t.Fatal(err)
		}
		c.SetFailing(bob, reason)
		r := p.Reader()
		fine, bad := wanted(2, chain.Address{1}), wanted(0x76, chain.Address{1}, bob)
		if gas, err := r.EstimateGas(t.Context(), "", alice, fine); err != nil || gas != 21_000 {
			t.Errorf("%d, %v", gas, err)
		}
		if err := r.Simulate(t.Context(), "", alice, fine); err != nil {
			t.Error(err)
		}
		_, estimated := r.EstimateGas(t.Context(), "", alice, bad)
		for _, err := range []error{estimated, r.Simulate(t.Context(), "", alice, bad), r.Simulate(t.Context(), "", alice, wanted(2, bob))} {
			var reverted *chain.Reverted
			if !errors.As(err, &reverted) || err.Error() != "it would revert: out of funds" || reverted.Block != c.Head() {
				t.Errorf("%+v", err)
			}
		}
	}
}

// One endpoint alone cannot fail a transaction or set its gas limit.
func TestTrialsOfOneLiar(t *testing.T) {
	for name, answer := range map[string]string{
		"it reverts":  `"error":{"code":3,"message":"execution reverted","data":"0x"}`,
		"too little":  `"result":"0x5"`,
		"too much":    `"result":"0xffffffff"`,
		"nothing":     `"result":"0x0"`,
		"null":        `"result":null`,
		"no number":   `"result":"many"`,
		"another day": `"error":{"code":-32603,"message":"internal error"}`,
	} {
		for place := range 3 {
			t.Run(fmt.Sprint(name, " ", place), func(t *testing.T) {
				t.Parallel()
				p, gates, _, _ := stalls(t, 3, nil)
				gates[place].replace(t, "eth_estimateGas", answer)
				var gas uint64
				err := errors.New("not asked")
				for tries := 0; err != nil && tries < 3; tries++ {
					if gas, err = p.Reader().EstimateGas(t.Context(), "", alice, wanted(2, bob)); errors.As(err, new(*chain.Reverted)) {
						t.Fatal(err)
					}
				}
				if err != nil || gas != 21_000 {
					t.Errorf("%d, %v", gas, err)
				}
			})
		}
	}
}

// A client's call may take nodes too long, break them, or end differently on each. All
// endpoints stay in rotation, and a pause that a node asks for does not delay broadcasts.
func TestTrialsCountForNothing(t *testing.T) {
	answer := func(w http.ResponseWriter, body []byte, text string) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, idOf(body), text)
	}
	for name, instead := range map[string]func(place int, w http.ResponseWriter, body []byte){
		"too slow": func(_ int, w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusGatewayTimeout) },
		"cut":      func(int, http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
		"broken": func(_ int, w http.ResponseWriter, body []byte) {
			answer(w, body, `"error":{"code":-32603,"message":"internal error"}`)
		},
		"no gas": func(_ int, w http.ResponseWriter, body []byte) { answer(w, body, `"result":"0x0"`) },
		"differs": func(place int, w http.ResponseWriter, body []byte) {
			if place == 2 {
				answer(w, body, `"error":{"code":3,"message":"execution reverted"}`)
				return
			}
			answer(w, body, `"result":"0x5208"`)
		},
		"all differ": func(place int, w http.ResponseWriter, body []byte) {
			answer(w, body, fmt.Sprintf(`"result":"0x%d0000"`, 2*place+1))
		},
		"wants a pause": func(_ int, w http.ResponseWriter, _ []byte) {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, gates, _, _ := stalls(t, 3, nil)
			for place, g := range gates {
				g.misbehave("eth_estimateGas", func(w http.ResponseWriter, _ *http.Request, body []byte) { instead(place, w, body) })
			}
			for range 8 {
				_, _ = p.Reader().EstimateGas(t.Context(), "", alice, wanted(2, bob))
			}
			for _, s := range p.Status() {
				if s.State != Healthy || s.Failures != 0 || s.Lies != 0 || s.Differences != 0 || s.Budget.Pause != 0 {
					t.Errorf("%+v", s)
				}
			}
			raw, hash := plain(alice, chain.NonceKey{30: 1}, 0)
			for _, a := range p.SendAll(t.Context(), raw, hash, 1, tx.Sending{}) {
				if a.Cause == tx.RateLimited {
					t.Errorf("broadcast: %+v", a)
				}
			}
		})
	}
}

func TestWhatReverts(t *testing.T) {
	at := chain.Block{Number: 7}
	for text, want := range map[string]bool{
		`{"code":3,"message":"execution reverted","data":"0x"}`:                         true,
		`{"code":3,"message":"execution reverted: no","data":"nonsense"}`:               true,
		`{"code":-32000,"message":"execution reverted"}`:                                true,
		`{"code":-32000,"message":"gas required exceeds allowance (30000000)"}`:         true,
		`{"code":-32003,"message":"out of gas: gas required exceeds allowance: 25000"}`: true,
		`{"code":-32000,"message":"insufficient funds for gas * price + value"}`:        false,
		`{"code":-32000,"message":"header not found"}`:                                  false,
		`{"code":-32005,"message":"limit exceeded"}`:                                    false,
		`{"code":-32603,"message":"internal error"}`:                                    false,
	} {
		replies, _, err := decode([]byte(`{"jsonrpc":"2.0","id":1,"error":`+text+`}`), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := revertedBy(replies[0].err, at); (got != nil) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	long := &NodeError{Code: 3, Data: fmt.Appendf(nil, `"0x%s"`, hex.EncodeToString(make([]byte, 1<<20)))}
	if got := revertedBy(long, at); len(got.Data) != reasonBytes {
		t.Errorf("%d bytes are kept", len(got.Data))
	}
}
