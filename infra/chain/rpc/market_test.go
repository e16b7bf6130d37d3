package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

const gwei = 1_000_000_000

// moving is a chain with a variable base fee and four transactions per block.
var moving = chaintest.Rules{GasLimit: 84_000, Elasticity: 2, BaseFee: 100 * gwei}

// paying is a transaction with a tip.
func paying(nonce, tip uint64) []byte {
	return chaintest.EncodePlain(chain.Signed{
		Chain: id, Type: 2, Sender: alice, NonceKey: key5, Nonce: nonce, Gas: 21_000,
		MaxFee: uint256.NewInt(1000 * gwei), MaxPriorityFee: uint256.NewInt(tip),
	})
}

// stalls are nodes of one chain in which the tips of a block are 1, 2 and 3 gwei.
func stalls(t *testing.T, n int, change func(*Config)) (*Pool, []*gateway, []*chaintest.Node, *chaintest.Chain) {
	t.Helper()
	c := newChain(t, moving)
	mine(t, c, paying(0, 1*gwei), paying(1, 2*gwei), paying(2, 3*gwei))
	mine(t, c)
	var urls []string
	gates, nodes := make([]*gateway, n), make([]*chaintest.Node, n)
	for i := range n {
		nodes[i] = c.Node(fmt.Sprint(i))
		gates[i] = &gateway{node: nodes[i]}
		urls = append(urls, serve(t, gates[i]))
	}
	return open(t, change, urls...), gates, nodes, c
}

func market(t *testing.T, p *Pool) chain.Market {
	t.Helper()
	m, err := p.Reader().Market(20, 10, 50, 90).Market(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// honest is the correct answer of the nodes of stalls. The base fee starts at 100 gwei, falls
// by an eighth after an empty block, and rises by a sixteenth after a block that is three
// quarters full.
func honest() chain.Market {
	first, second, third := chain.PriceOf(100*gwei), chain.PriceOf(87_500_000_000), chain.PriceOf(92_968_750_000)
	next := chain.PriceOf(81_347_656_250)
	tips := func(n ...uint64) (prices []chain.Price) {
		for _, n := range n {
			prices = append(prices, chain.PriceOf(n*gwei))
		}
		return prices
	}
	return chain.Market{Head: 2, Next: &next, Blocks: []chain.Paid{
		{BaseFee: first, Tips: tips(0, 0, 0)},
		{BaseFee: second, Full: 0.75, Tips: tips(1, 2, 3)},
		{BaseFee: third, Tips: tips(0, 0, 0)},
	}}
}

func TestMarket(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 6} {
		p, _, _, _ := stalls(t, n, nil)
		if d := cmp.Diff(honest(), market(t, p), comparable256); d != "" {
			t.Errorf("%d endpoints (-want +got):\n%s", n, d)
		}
	}
}

// patientMarket repeats the question while too few endpoints have answered in time.
func patientMarket(t *testing.T, p *Pool) chain.Market {
	t.Helper()
	for tries := 1; ; tries++ {
		m, err := p.Reader().Market(20, 10, 50, 90).Market(t.Context())
		if err == nil {
			return m
		}
		if tries == 10 || !errors.Is(err, errAlone) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

var comparable256 = cmp.Comparer(func(a, b chain.Price) bool { return a == b })

// One lying endpoint of three or four sets no price, whichever it is: it lies about all prices,
// about its head, or serves another node's history. Reads may begin with it.
func TestMarketOfOneLiar(t *testing.T) {
	header := `"result":{"number":"0x%x","hash":"0x%064x","parentHash":"0x%064x","timestamp":"0x1","baseFeePerGas":"0x%x","transactions":[]}`
	lies := map[string]func(t *testing.T, g *gateway, n *chaintest.Node){
		"dear": func(_ *testing.T, _ *gateway, n *chaintest.Node) {
			n.Set(chaintest.Faults{Prices: func(p uint64) uint64 { return 50 * p }})
		},
		"cheap": func(_ *testing.T, _ *gateway, n *chaintest.Node) {
			n.Set(chaintest.Faults{Prices: func(p uint64) uint64 { return p / 50 }})
		},
		"free": func(_ *testing.T, _ *gateway, n *chaintest.Node) {
			n.Set(chaintest.Faults{Prices: func(uint64) uint64 { return 0 }})
		},
		"ahead": func(_ *testing.T, _ *gateway, n *chaintest.Node) {
			n.Set(chaintest.Faults{Ahead: 5, Prices: func(p uint64) uint64 { return 9 * p }})
		},
		"behind": func(_ *testing.T, _ *gateway, n *chaintest.Node) { n.Set(chaintest.Faults{Lag: 2}) },
		"last block": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			g.replace(t, "eth_getBlockByNumber", fmt.Sprintf(header, ^uint64(0), 7, 6, 1))
		},
		"no base fee": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			g.replace(t, "eth_getBlockByNumber", fmt.Sprintf(strings.Replace(header, "baseFeePerGas", "x", 1), 2, 7, 6, 1))
		},
		"no history": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			g.replace(t, "eth_feeHistory", `"error":{"code":-32601,"message":"no"}`)
		},
		"null": func(t *testing.T, g *gateway, _ *chaintest.Node) { g.replace(t, "eth_feeHistory", `"result":null`) },
		"wild": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			most := "0x" + strings.Repeat("f", 64)
			g.replace(t, "eth_feeHistory", fmt.Sprintf(`"result":{"oldestBlock":"0x1","baseFeePerGas":["%s","%s","%s"],"gasUsedRatio":[-1,1e300],"reward":[["%s","0x0","0x1"],["0x0","0x0","0x0"]]}`, most, most, most, most))
		},
		"misshapen": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			g.replace(t, "eth_feeHistory", `"result":{"oldestBlock":"0x1","baseFeePerGas":["0x1"],"gasUsedRatio":[1],"reward":[["0x1"]]}`)
		},
		"endless": func(t *testing.T, g *gateway, _ *chaintest.Node) {
			g.replace(t, "eth_feeHistory", `"result":{"oldestBlock":"0x1","baseFeePerGas":["0x1"`+strings.Repeat(`,"0x1"`, 50)+`]}`)
		},
		"hangs": func(_ *testing.T, _ *gateway, n *chaintest.Node) { n.Set(chaintest.Faults{Delay: time.Hour}) },
		"gone":  func(_ *testing.T, _ *gateway, n *chaintest.Node) { n.Set(chaintest.Faults{Down: true}) },
	}
	for name, lie := range lies {
		for _, n := range []int{3, 4} {
			for _, place := range []int{0, n - 1} {
				t.Run(fmt.Sprintf("%s, %d of %d", name, place, n), func(t *testing.T) {
					t.Parallel()
					p, gates, nodes, _ := stalls(t, n, func(c *Config) {
						c.HeadTimeout, c.CallTimeout = 20*time.Second, 20*time.Second
						if name == "hangs" {
							c.HeadTimeout = time.Second
						}
					})
					lie(t, gates[place], nodes[place])
					if d := cmp.Diff(honest(), patientMarket(t, p), comparable256); d != "" {
						t.Errorf("(-want +got):\n%s", d)
					}
				})
			}
		}
	}
}

// If two endpoints differ, neither is believed and the price stays unknown. Their suggested
// tips are no facts, and the lower one counts.
func TestMarketOfTwo(t *testing.T) {
	p, _, nodes, _ := stalls(t, 2, nil)
	nodes[1].Set(chaintest.Faults{Prices: func(p uint64) uint64 { return 3 * p }})
	if got, err := p.Reader().Market(20, 50).Market(t.Context()); !errors.Is(err, errAlone) {
		t.Errorf("%+v, %v", got, err)
	}
	if s := p.Status(); s[0].Differences == 0 || s[1].Differences == 0 {
		t.Errorf("nobody is told: %+v", s)
	}
	nodes[1].Set(chaintest.Faults{Prices: func(p uint64) uint64 { return p + p/10 }})
	if got, want := market(t, p), honest(); *got.Next != *want.Next || got.Blocks[1].Tips[1] != want.Blocks[1].Tips[1] {
		t.Errorf("%+v", got)
	}
}

// An endpoint whose base fee for a block differs from the value of the others is blamed.
func TestMarketBlames(t *testing.T) {
	p, _, nodes, _ := stalls(t, 3, nil)
	nodes[2].Set(chaintest.Faults{Prices: func(p uint64) uint64 { return p + 1 }})
	for range 20 { // it may answer last, and is not waited for
		market(t, p)
		if s := p.Status(); s[2].Lies > 0 {
			if s[0].Lies+s[1].Lies > 0 {
				t.Errorf("%+v", s)
			}
			return
		}
	}
	t.Errorf("nobody is blamed: %+v", p.Status())
}

// If no tips are paid, or nodes serve no history, their suggestions are asked for.
func TestMarketWithoutTips(t *testing.T) {
	p, gates, _, c := stalls(t, 3, nil)
	for _, g := range gates {
		g.replace(t, "eth_feeHistory", `"error":{"code":-32601,"message":"the method does not exist"}`)
	}
	got := market(t, p)
	_, most := around(chain.PriceOf(92_968_750_000))
	if got.Suggested != chain.PriceOf(2*gwei) || *got.Next != most || len(got.Blocks) > 0 {
		t.Errorf("%+v", got)
	}
	for _, g := range gates {
		g.replace(t, "eth_maxPriorityFeePerGas", `"error":{"code":-32601,"message":"the method does not exist"}`)
	}
	if got := market(t, p); got.Suggested != (chain.Price{}) {
		t.Errorf("%+v", got)
	}
	for range 20 {
		mine(t, c)
	}
	for _, g := range gates {
		g.replace(t, "eth_maxPriorityFeePerGas", `"result":"0x7"`)
	}
	if got := market(t, p); got.Suggested != chain.PriceOf(7) || len(got.Blocks) != 20 {
		t.Errorf("of empty blocks: %+v", got)
	}
}

func TestMarketBeforeBaseFees(t *testing.T) {
	c := newChain(t, chaintest.Rules{NoBaseFee: true})
	mine(t, c, chaintest.EncodePlain(chain.Signed{Chain: id, Sender: alice, Gas: 21_000, GasPrice: uint256.NewInt(5 * gwei)}))
	var urls []string
	for i, times := range []uint64{1, 1, 90} {
		n := c.Node(fmt.Sprint(i))
		n.Set(chaintest.Faults{Prices: func(p uint64) uint64 { return p * times }})
		urls = append(urls, serve(t, n))
	}
	if d := cmp.Diff(chain.Market{Head: 1, GasPrice: chain.PriceOf(5 * gwei)}, market(t, open(t, nil, urls...)), comparable256); d != "" {
		t.Error(d)
	}
}

// A market is read once per block for all callers, and at most once a second.
func TestMarketIsKept(t *testing.T) {
	clock := newTimer()
	p, _, nodes, c := stalls(t, 1, func(c *Config) { c.Now = clock.now })
	m := p.Reader().Market(20, 50)
	read := func() int { return nodes[0].Calls()["eth_feeHistory"] }
	ask := func() chain.Market {
		t.Helper()
		got, err := m.Market(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 10 {
		ask()
	}
	mine(t, c)
	ask()
	if read() != 1 {
		t.Errorf("read %d times within a second", read())
	}
	clock.advance(marketFor)
	if got := ask(); read() != 2 || got.Head != 3 {
		t.Errorf("read %d times after another block: %+v", read(), got)
	}
	clock.advance(marketFor)
	ask()
	if read() != 2 {
		t.Errorf("read %d times for one block", read())
	}
	clock.advance(marketAtHead)
	ask()
	if read() != 3 {
		t.Errorf("a head is taken for the newest for ever")
	}
}

func TestMarketGivesUp(t *testing.T) {
	p, _, nodes, _ := stalls(t, 3, nil)
	for _, n := range nodes {
		n.Set(chaintest.Faults{Delay: time.Hour})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Reader().Market(20, 50).Market(ctx); err == nil {
		t.Error("no error")
	}
}

func TestMarketOfSenselessSettings(t *testing.T) {
	p, _, _, _ := stalls(t, 1, nil)
	for name, ask := range map[string]func(r *Reader){
		"no blocks":     func(r *Reader) { r.Market(0, 50) },
		"many blocks":   func(r *Reader) { r.Market(MarketBlocksMax+1, 50) },
		"no percentile": func(r *Reader) { r.Market(20) },
		"falling":       func(r *Reader) { r.Market(20, 50, 40) },
		"over 100":      func(r *Reader) { r.Market(20, 101) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			ask(p.Reader())
		}()
	}
}
