package worker

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// bazaar is a chain whose base fee moves, its nodes, and an estimator that reads them.
type bazaar struct {
	*chaintest.Chain
	nodes []*chaintest.Node
	clock *clock
	Estimator
	nonce uint64
}

var seller = chain.Address{0xa1}

func newBazaar(t *testing.T, kind uint8, change func(*fee.Policy)) *bazaar {
	t.Helper()
	b := &bazaar{clock: &clock{at: time.Unix(1_800_000_000, 0)}}
	b.Chain = chaintest.New(chaintest.Options{
		Chain: moderato, Decode: chaintest.DecodePlain, Now: b.clock.now,
		Rules: chaintest.Rules{GasLimit: 84_000, Elasticity: 2, BaseFee: 1_000_000_000},
	})
	t.Cleanup(b.Close)
	config := rpc.Config{Chain: moderato, Probe: time.Hour, Now: b.clock.now}
	for i := range 3 {
		node := b.Node(fmt.Sprint(i))
		server := httptest.NewServer(node)
		t.Cleanup(server.Close)
		b.nodes = append(b.nodes, node)
		config.Endpoints = append(config.Endpoints, rpc.Endpoint{Name: fmt.Sprint(i), URL: server.URL})
	}
	pool, err := rpc.Open(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	policy := fee.Default()
	if change != nil {
		change(&policy)
	}
	must(t, policy.Check())
	reader := pool.Reader()
	b.Estimator = Estimator{
		Chain: moderato, Type: kind, Policy: policy, Trials: reader,
		Market: reader.Market(20, policy.Percentiles()...),
	}
	return b
}

// bytes returns a transaction of the seller's next nonce, at a fee.
func (b *bazaar) bytes(nonce uint64, offer chain.Fee) []byte {
	return chaintest.EncodePlain(chain.Signed{
		Chain: moderato, Type: 2, Sender: seller, Nonce: nonce, Gas: 21_000,
		MaxFee: offer.MaxFee.Int(), MaxPriorityFee: offer.MaxPriorityFee.Int(),
	})
}

// mine mines a block in which others have taken some of its four places, paying a tip.
func (b *bazaar) mine(t *testing.T, others int, tip uint64) {
	t.Helper()
	var raws [][]byte
	for range others {
		b.nonce++
		raws = append(raws, chaintest.EncodePlain(chain.Signed{
			Chain: moderato, Type: 2, Sender: chain.Address{0xee}, Nonce: b.nonce - 1, Gas: 21_000,
			MaxFee: uint256.NewInt(1 << 62), MaxPriorityFee: uint256.NewInt(tip),
		}))
	}
	b.clock.pass(time.Second)
	_, err := b.Mine(raws...)
	must(t, err)
}

// hand sends bytes to a node as delivery does, and returns its answer.
func (b *bazaar) hand(raw []byte) string {
	w := httptest.NewRecorder()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%s"]}`, hex.EncodeToString(raw))
	b.nodes[0].ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	return w.Body.String()
}

// While others fill the blocks and the base fee rises by an eighth with each, an offer of
// each urgency is accepted. It outlasts as many full blocks as its headroom allows.
func TestOffersOutlastFullBlocks(t *testing.T) {
	for urgency, full := range map[fee.Urgency]int{fee.Slow: 1, fee.Normal: 3, fee.Fast: 5} {
		b := newBazaar(t, 2, nil)
		for range 5 {
			b.mine(t, 3, 2_000_000)
		}
		offer, err := b.Offer(t.Context(), fee.Terms{Urgency: urgency})
		must(t, err)
		if tip := chain.PriceOf(2_000_000); offer.Fee.MaxPriorityFee != tip {
			t.Errorf("%s: a tip of %s, where %s is paid", urgency, offer.Fee.MaxPriorityFee, tip)
		}
		raw := b.bytes(0, offer.Fee)
		for range full {
			b.mine(t, 4, 2_000_000) // no place is left
		}
		if said := b.hand(raw); strings.Contains(said, "error") {
			t.Errorf("%s, after %d full blocks: %s", urgency, full, said)
		}
		b.mine(t, 0, 0)
		if b.Nonce(chain.Sequence{Chain: moderato, Sender: seller}) != 1 {
			t.Errorf("%s, after %d full blocks: not mined at %s", urgency, full, offer.Fee.MaxFee)
		}
	}
}

// The base fee rises sharply: the attempt is bumped up to the ceiling, each bump replacing
// the previous attempt. When the base fee falls, the last bump is mined.
func TestBumpsToTheCeiling(t *testing.T) {
	b := newBazaar(t, 2, func(p *fee.Policy) { p.Ceiling = chain.PriceOf(2_500_000_000) })
	b.mine(t, 2, 5_000_000)
	var terms fee.Terms
	bumps := 0
	for ; ; bumps++ {
		offer, err := b.Offer(t.Context(), terms)
		if errors.Is(err, fee.ErrCeiling) {
			break
		}
		must(t, err)
		if said := b.hand(b.bytes(0, offer.Fee)); strings.Contains(said, "error") {
			t.Fatalf("bump %d to %s: %s", bumps, offer.Fee.MaxFee, said)
		}
		terms.Replaces = &offer.Fee
	}
	if most := terms.Replaces.MaxFee; bumps < 3 || most.Int().Uint64() > 2_500_000_000 || most.Int().Uint64() < 2_270_000_000 {
		t.Errorf("%d bumps, up to %s", bumps, most)
	}
	b.SetBaseFee(3_000_000_000)
	b.mine(t, 2, 0)
	b.clock.pass(2 * time.Second)
	if got, err := b.Offer(t.Context(), fee.Terms{}); !errors.Is(err, fee.ErrMarket) {
		t.Errorf("above the ceiling: %+v, %v", got, err)
	}
	b.SetBaseFee(1_000_000_000)
	if said := b.hand(b.bytes(0, *terms.Replaces)); strings.Contains(said, "error") && !strings.Contains(said, "already known") {
		t.Error(said)
	}
	b.mine(t, 0, 0)
	if b.Nonce(chain.Sequence{Chain: moderato, Sender: seller}) != 1 {
		t.Errorf("not mined at %s", terms.Replaces.MaxFee)
	}
}

// One lying node of three changes no offer.
func TestOfferDespiteALiar(t *testing.T) {
	for _, liar := range []int{0, 2} {
		b := newBazaar(t, 2, nil)
		b.mine(t, 2, 5_000_000)
		want, err := b.Offer(t.Context(), fee.Terms{})
		must(t, err)
		b.nodes[liar].Set(chaintest.Faults{Prices: func(p uint64) uint64 { return 1000 * p }})
		b.clock.pass(time.Minute)
		if got, err := b.Offer(t.Context(), fee.Terms{}); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestGasOf(t *testing.T) {
	b := newBazaar(t, 0x76, func(p *fee.Policy) { p.GasCeiling = 100_000 })
	dead := chain.Address{0xdd}
	b.SetFailing(dead, []byte{1, 2, 3})
	s := chain.Sequence{Chain: moderato, Sender: seller, Key: chain.NonceKey{31: 5}}
	to := func(to chain.Address, limit uint64, simulate bool) intent.Request {
		return intent.Request{Calls: []intent.Call{{To: &to}}, Gas: intent.Gas{Limit: limit}, Simulate: simulate}
	}
	for _, c := range []struct {
		name    string
		request intent.Request
		want    uint64
		refusal eventlog.Refusal
	}{
		{"estimated, with a margin", to(chain.Address{1}, 0, false), 25_200, ""},
		{"as it says", to(chain.Address{1}, 30_000, false), 30_000, ""},
		{"as it says, and tried", to(chain.Address{1}, 30_000, true), 30_000, ""},
		{"as it says, though it reverts: nobody asks", to(dead, 30_000, false), 30_000, ""},
		{"tried, and reverts", to(dead, 30_000, true), 0, ErrReverts},
		{"estimated, and reverts", to(dead, 0, false), 0, ErrReverts},
		{"more than it may have", to(chain.Address{1}, 100_001, false), 0, fee.ErrGas},
	} {
		got, err := b.Gas(t.Context(), s, c.request)
		if got != c.want || c.refusal == "" && err != nil || c.refusal != "" && !errors.Is(err, c.refusal) {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
		if c.refusal == ErrReverts && !strings.HasSuffix(err.Error(), "it would revert: 0x010203") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, n := range b.nodes {
		n.Set(chaintest.Faults{Down: true})
	}
	if _, err := b.Gas(t.Context(), s, to(chain.Address{1}, 0, false)); err == nil || errors.As(err, new(eventlog.Refusal)) {
		t.Errorf("nobody answers: %v", err)
	}
	b.clock.pass(time.Minute)
	if _, err := b.Offer(t.Context(), fee.Terms{}); err == nil || errors.As(err, new(eventlog.Refusal)) {
		t.Errorf("nobody answers: %v", err)
	}
}
