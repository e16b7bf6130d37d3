package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// One client repeats a request for which a node is asked until it has used up its share of the
// node's calls of the day. The service still sends a transaction and sees it mined.
func TestRequestsLeaveNodesCalls(t *testing.T) {
	const daily = 1000
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			c := chaintest.New(chaintest.Options{Chain: rig.TempoChain, Decode: app.Decode})
			t.Cleanup(c.Close)
			node := httptest.NewServer(c.Node("a"))
			t.Cleanup(node.Close)
			ctx, stop := context.WithCancel(t.Context())
			listening, ended := make(chan string, 1), make(chan error, 1)
			var mining sync.WaitGroup
			mining.Go(func() { c.Run(ctx, time.Second) })
			t.Cleanup(mining.Wait)
			t.Cleanup(stop)
			go func() {
				ended <- app.Serve(ctx, settings(t, "--chains", fmt.Sprintf("%s=%s", rig.TempoChain, node.URL), "--grouping", "all",
					"--endpoints-daily", fmt.Sprint(daily)), app.Options{
					Log:       slog.New(slog.DiscardHandler),
					Listening: func(public, _ net.Addr) { listening <- "http://" + public.String() },
				})
			}()
			at := <-listening

			key := chain.NonceKey{31: 9}
			later := uint64(time.Now().Add(time.Hour).Unix())
			waits := rig.Pay(wallet.Dev(0), wallet.Tempo{
				NonceKey: key, Window: chain.Window{After: later}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)},
			})
			submit(t, at, waits)
			target := fmt.Sprintf("%s/v1/senders/%s/groups/%s", at, wallet.Dev(0).Address(), key.Group())
			if method == http.MethodDelete {
				target = fmt.Sprintf("%s/v1/transactions/%s", at, waits.Hash)
			}
			asked := 0
			for deadline := time.Now().Add(time.Minute); ; {
				var got struct {
					CancelPlan struct{ CurrentNonce *uint64 }
				}
				status := ask(t, method, target, "", "", &got)
				if status == http.StatusServiceUnavailable || status == http.StatusOK && got.CancelPlan.CurrentNonce == nil {
					break
				}
				if status == http.StatusOK || status == http.StatusBadRequest { // not while the group is being built
					asked++
				}
				if time.Now().After(deadline) {
					t.Fatalf("the nodes are still asked after %d requests; the last was answered %d", asked, status)
				}
			}
			if asked < daily/10 {
				t.Errorf("the nodes were asked for %d requests only", asked)
			}
			due, _ := rig.Payments(1, 1)
			submit(t, at, due...)
			soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err := rig.Await(soon, at, due[0].Hash, rig.Executed); err != nil {
				t.Errorf("after %d requests: %v", asked, err)
			}
			stop()
			must(t, <-ended)
		})
	}
}

// submit submits payments, which must be accepted.
func submit(t *testing.T, url string, payments ...rig.Payment) {
	t.Helper()
	for _, p := range payments {
		results, err := rig.Submit(t.Context(), url, rig.TempoChain, p.Raw)
		must(t, err)
		if !results[0].OK {
			t.Fatalf("%+v", results[0])
		}
	}
}
