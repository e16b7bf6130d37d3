//go:build chaos

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// cutter is a proxy that cuts a share of the replies: the request was carried out, and the connection
// ends without an answer.
type cutter struct {
	to     string
	server *httptest.Server

	mu    sync.Mutex
	dice  *rand.Rand
	share float64
	cuts  int
}

func cut(t *testing.T, to string, share float64, seed uint64) *cutter {
	t.Helper()
	c := &cutter{to: to, share: share, dice: rand.New(rand.NewPCG(seed, seed))}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *cutter) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var status int
	var answer []byte
	if err == nil {
		status, answer, err = forward(r, c.to+r.URL.Path, body)
	}
	if err != nil || c.cutsThis() {
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(answer) // a caller that has gone misses it
}

func (c *cutter) cutsThis() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	yes := c.dice.Float64() < c.share
	if yes {
		c.cuts++
	}
	return yes
}

// count is the number of cut replies.
func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// onChain counts the transactions of the chain that have a mark.
func (w *world) onChain(t *testing.T, marks []string) (count map[string]int) {
	t.Helper()
	count = map[string]int{}
	var last string
	check(t, rig.Call(w.ctx, w.node.URL(), &last, "eth_blockNumber"))
	var end uint64
	_, err := fmt.Sscanf(last, "0x%x", &end)
	check(t, err)
	for n := range end + 1 {
		var block struct{ Transactions []json.RawMessage }
		check(t, rig.Call(w.ctx, w.node.URL(), &block, "eth_getBlockByNumber", fmt.Sprintf("0x%x", n), true))
		for _, raw := range block.Transactions {
			for _, m := range marks {
				if strings.Contains(string(raw), strings.TrimPrefix(m, "0x")) {
					count[m]++
				}
			}
		}
	}
	return count
}

// A tenth of all replies is cut, between the application and the relayers and between these and the node.
// Applications on every library, at its defaults, repeat what fails, at either of two replicas. The chain
// has every payment, once.
func TestWalletsWithCutReplies(t *testing.T) {
	t.Parallel()
	const payments, share = 25, 0.1
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inPostgres)
			node := cut(t, w.node.URL(), share, 1)
			w.flags = with(w.flags, fmt.Sprintf("--chains=%d=%s", w.id, node.server.URL))
			first, second := w.relayer(t), w.relayer(t)
			check(t, first.Start(w.ctx))
			check(t, second.Start(w.ctx))
			doors := []client{w.client(t, first), w.client(t, second)}
			balance := balanced{}
			for i, c := range doors {
				balance.all = append(balance.all, cut(t, c.url, share, uint64(2+i)))
			}
			server := httptest.NewServer(&balance)
			t.Cleanup(server.Close)
			var marks []string
			running := map[string]*application{}
			for n, library := range libraries {
				own := make([]string, payments)
				for i := range own {
					own[i] = mark(100*n + i)
				}
				marks = append(marks, own...)
				args := append([]string{wallet.Dev(n % 2).Address().String(), "send"}, own...)
				running[library] = w.launch(t, library, fmt.Sprintf("%s/rpc/%d", server.URL, w.id), []string{"WATCHTOWER_TEST_FAILURES=1000"}, args...)
			}
			for library, a := range running {
				for range payments {
					if got := a.receipt(t).Receipt; !got.OK {
						t.Errorf("%s: %+v", library, got)
					}
				}
				check(t, a.wait())
			}
			check(t, second.Stop(w.ctx))
			w.accepted(t, first)
			count := w.onChain(t, marks)
			for _, m := range marks {
				if count[m] != 1 {
					t.Errorf("the chain has the payment %s %d times", m, count[m])
				}
			}
			if len(w.asked) != len(marks) {
				t.Errorf("%d intents for %d payments", len(w.asked), len(marks))
			}
			w.judge(t)
			t.Logf("%d payments; cut replies: %d of the node, %d and %d of the replicas", len(marks), node.count(), balance.all[0].count(), balance.all[1].count())
			if node.count() == 0 || balance.all[0].count() == 0 || balance.all[1].count() == 0 {
				t.Error("nothing was cut")
			}
		})
	}
}

// balanced sends requests to its cutters in turn.
type balanced struct {
	all  []*cutter
	mu   sync.Mutex
	next int
}

func (b *balanced) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	to := b.all[b.next%len(b.all)]
	b.next++
	b.mu.Unlock()
	to.ServeHTTP(rw, r)
}
