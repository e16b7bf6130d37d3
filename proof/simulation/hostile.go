package simulation

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
)

// HostilePlan is a client that tries to harm others, with its own key with every scope except
// admin and audit; and a web page in a browser near the service.
type HostilePlan struct {
	Rate    float64       // the client's requests per second; 0: no such client
	Crowd   time.Duration // interval of crowds that become eligible in one second
	Crowded int           // transactions per crowd
	Page    float64       // the page's requests per second
	// LeftOut is the chance that an intent of the client calls an account whose calls nodes take,
	// and blocks leave out most of the time.
	LeftOut float64 `json:",omitzero"`
}

// WithHostile draws the hostile parties of a world. A page cannot do harm where a key is needed,
// so some worlds have one and no keys.
func (p Plan) WithHostile() Plan {
	d := dice{rand.New(rand.NewPCG(p.Seed, 0x4057))}
	h := HostilePlan{Rate: 0.1 + 0.3*d.Float64(), Crowd: d.every(6 * time.Minute), Crowded: 100 + d.IntN(200), Page: 0.02}
	if p.Keys = d.chance(0.65); !p.Keys {
		h = HostilePlan{Page: h.Page}
	}
	if p.Keys {
		h.LeftOut = d.rate(0.3)
	}
	p.Hostile = h
	return p
}

// neighbor is the hostile client and the page. A nil neighbor does nothing.
type neighbor struct {
	world *world
	plan  HostilePlan
	rand  *rand.Rand
	own   []*sender
	key   wallet.Secp256k1 // signs in the name of other accounts
	fresh uint64
	ahead []*signed // its waiting transactions
	asked []*wanting
	count uint64
}

const (
	hostileSenders = 4
	hostileMost    = 256 // maximum number of its own transactions that it remembers
)

func newNeighbor(w *world) *neighbor {
	if w.plan.Hostile == (HostilePlan{}) {
		return nil
	}
	n := &neighbor{world: w, plan: w.plan.Hostile, rand: rand.New(rand.NewPCG(w.plan.Seed, 0x405711e))}
	for i := range hostileSenders + 1 {
		secret := chain.Keccak([]byte("hostile sender"), binary.BigEndian.AppendUint64(nil, w.plan.Seed), []byte{byte(i)})
		key, err := wallet.NewSecp256k1(secret)
		if err != nil {
			panic(err) // a hash exceeds the curve's order once in 2^128
		}
		if i == hostileSenders {
			n.key = key
			break
		}
		n.own = append(n.own, &sender{key: key, address: key.Address()})
	}
	return n
}

// begin schedules their actions.
func (n *neighbor) begin() {
	if n == nil {
		return
	}
	n.often(n.plan.Rate, n.act)
	n.often(n.plan.Page, n.browse)
	if n.plan.Crowd > 0 {
		n.often(1/n.plan.Crowd.Seconds(), n.crowd)
	}
}

// often schedules do at a rate per second until the world heals.
func (n *neighbor) often(rate float64, do func()) {
	if rate <= 0 {
		return
	}
	usual := float64(time.Second) / rate
	n.world.agenda.after(time.Duration(usual*(0.5+n.rand.Float64())), "hostile", func() {
		if n.world.healed {
			return
		}
		do()
		n.often(rate, do)
	})
}

// act performs a random action of the hostile client.
func (n *neighbor) act() {
	turns := []func(){n.pay, n.pay, n.pay, n.pay, n.pay, n.pay, n.forge, n.odd, n.meddle, n.meddle, n.meddle, n.listen, n.gap, n.repeat}
	if n.world.relayed() {
		turns = append(turns, n.want, n.want, n.want, n.want, n.meddleIntent, n.meddleIntent)
	}
	turns[n.rand.IntN(len(turns))]()
}

// end withdraws transactions and intents that would keep the world from ending.
func (n *neighbor) end() {
	if n == nil {
		return
	}
	for _, t := range n.ahead {
		if t.window.After > n.world.load.unix(0) {
			n.ask("withdraws", &wish{method: http.MethodDelete, path: "/v1/transactions/" + t.hash.String()})
		}
	}
}

// ask sends a request of the hostile client, without waiting for its answer.
func (n *neighbor) ask(what string, r *wish) {
	n.world.faults["hostile: "+what]++
	r.what, r.from = "hostile", hostile
	if r.method == "" {
		r.method = http.MethodPost
	}
	n.world.ask(r)
}

func (n *neighbor) freshKey() chain.NonceKey {
	n.fresh++
	key := chain.NonceKey{0: 2}
	binary.BigEndian.PutUint64(key[24:], n.fresh)
	return key
}

// sign signs a payment with a key.
func (n *neighbor) sign(by wallet.Key, key chain.NonceKey, nonce uint64, w chain.Window) *signed {
	to := chain.Address{0: 0x66, 19: 1}
	t := &signed{key: key, nonce: nonce, window: w}
	t.raw = wallet.Tempo{
		Chain: chainID, MaxFee: 60 * gwei, MaxPriorityFee: gwei, Gas: 100_000, NonceKey: key, Nonce: nonce, Window: w,
		Calls: []chain.Call{{To: &to}},
	}.Sign(by)
	t.hash = chain.Keccak(t.raw)
	return t
}

// submit submits transactions.
func (n *neighbor) submit(what string, all []*signed) {
	n.world.tenants.owns(hostile, all...)
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = `"0x` + hex.EncodeToString(t.raw) + `"`
	}
	if n.ahead = append(n.ahead, all...); len(n.ahead) > hostileMost {
		n.ahead = n.ahead[len(n.ahead)-hostileMost:]
	}
	n.ask(what, &wish{path: "/v1/transactions", body: fmt.Appendf(nil, `{"chainId":%s,"transactions":[%s]}`, chainID, strings.Join(texts, ","))})
}

func (n *neighbor) any() *sender { return n.own[n.rand.IntN(len(n.own))] }

// pay submits payments that are due at once.
func (n *neighbor) pay() {
	all := make([]*signed, 1+n.rand.IntN(3))
	for i := range all {
		all[i] = n.sign(n.any().key, n.freshKey(), 0, chain.Window{Before: n.unix(time.Minute, 5*time.Minute)})
	}
	n.submit("pays", all)
}

// unix draws a time from now on.
func (n *neighbor) unix(low, high time.Duration) uint64 {
	return n.world.load.unix(low + time.Duration(n.rand.Int64N(int64(high-low))))
}

// crowd submits transactions that become eligible in one second.
func (n *neighbor) crowd() {
	at := n.unix(5*time.Second, 40*time.Second)
	all := make([]*signed, n.plan.Crowded)
	for i := range all {
		all[i] = n.sign(n.any().key, n.freshKey(), 0, chain.Window{After: at, Before: at + 600})
	}
	n.submit("has a crowd become eligible", all)
}

// gap submits transactions behind a nonce that is never used.
func (n *neighbor) gap() {
	key, before := n.freshKey(), n.unix(2*time.Minute, 8*time.Minute)
	var all []*signed
	for nonce := range uint64(6) {
		all = append(all, n.sign(n.any().key, key, nonce+1, chain.Window{Before: before}))
	}
	n.submit("leaves a gap", all)
}

// inName signs like an access key (Keychain V2) in the name of an account that has not
// authorized it.
type inName struct {
	account chain.Address
	key     wallet.Secp256k1
}

func (k inName) Address() chain.Address { return k.account }

func (k inName) Sign(digest chain.Hash) []byte {
	const keychain = 0x04
	signature := k.key.Sign(chain.Keccak([]byte{keychain}, digest[:], k.account[:]))
	return append(append([]byte{keychain}, k.account[:]...), signature...)
}

// forge fills a victim's sequence with transactions in the victim's name: at used nonces, and
// eligible long after, so that they stay.
func (n *neighbor) forge() {
	l := n.world.load
	whom := l.senders[n.rand.IntN(len(l.senders))]
	at := whom.lanes[n.rand.IntN(lanesMost)]
	by := inName{whom.address, n.key}
	next := n.world.chain.Nonce(chain.Sequence{Chain: chainID, Sender: whom.address, Key: at.key})
	after := n.unix(4*time.Minute, 8*time.Minute)
	var all []*signed
	for range 16 + n.rand.IntN(8) {
		nonce := uint64(0)
		if next > 0 {
			nonce = n.rand.Uint64N(next)
		}
		after++ // otherwise the bytes are the same
		all = append(all, n.sign(by, at.key, nonce, chain.Window{After: after, Before: after + 120}))
	}
	if n.rand.IntN(4) == 0 { // like members of the victim's group
		if g := n.groupOf(); g != nil {
			all = append(all, n.sign(inName{g.sender.address, n.key}, g.key, uint64(n.rand.IntN(3)), chain.Window{After: after, Before: after + 120})) //nolint:gosec // small
		}
	}
	n.submit("forges claims", all)
}

// groupOf is a member of a victim's group; nil if there is none.
func (n *neighbor) groupOf() *signed {
	if all := n.world.load.groups; len(all) > 0 {
		return all[n.rand.IntN(len(all))]
	}
	return nil
}

// odd sends malformed requests, and requests that are expensive to parse.
func (n *neighbor) odd() {
	t := n.sign(n.any().key, n.freshKey(), 0, chain.Window{})
	longer := append([]byte{t.raw[0], 0xfa, 0x00, t.raw[2]}, t.raw[3:]...) // a length not in its shortest form
	bodies := []string{
		fmt.Sprintf(`{"chainId":%s,"transactions":["0x%x"]}`, chainID, longer),
		fmt.Sprintf(`{"chainId":%s,"transactions":["0x%x00"]}`, chainID, t.raw),
		fmt.Sprintf(`{"chainId":%s,"chainId":%s,"transactions":["0x%x"]}`, chainID, chainID, t.raw),
		`{"chainId":` + chainID.String() + `,"transactions":[` + strings.Repeat(`"0x00",`, 1100) + `"0x00"]}`,
		strings.Repeat(`[`, 2000),
		"\xff\xfe\x00", `null`, `{"chainId":1e3}`,
	}
	if i := n.rand.IntN(len(bodies) + 2); i < len(bodies) {
		n.ask("sends odd encodings", &wish{path: "/v1/transactions", body: []byte(bodies[i])})
		return
	}
	if n.rand.IntN(2) == 0 {
		n.ask("sends a batch of nothing", &wish{path: "/rpc", body: []byte("[" + strings.Repeat("0,", 20_000) + "0]")})
		return
	}
	n.batches()
}

// batches sends JSON-RPC batches at one moment, with more calls than its key may make at all
// replicas together. In twin worlds, whose replicas keep their rate limits, the world checks
// that not all of them are answered.
func (n *neighbor) batches() {
	const calls = 100
	most := n.world.plan.Replicas * (hostileRate.Burst + hostileRate.PerSecond)
	answered, call := 0, `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`
	for range most/calls + 3 {
		n.ask("sends batches", &wish{
			path: "/rpc", body: []byte("[" + strings.Repeat(call+",", calls-1) + call + "]"),
			told: func(out *recorder) bool {
				if bytes.HasPrefix(out.body.Bytes(), []byte("[")) {
					answered += calls
				}
				if answered > most && n.world.plan.Twins {
					n.world.judge.fail("P36", "%d calls in batches were answered in a moment, to a client that may make %d", answered, most)
				}
				return true
			},
		})
	}
}

// meddle reads and cancels the victim's transactions and groups.
func (n *neighbor) meddle() {
	recent := n.world.load.recent
	if len(recent) == 0 {
		return
	}
	t := recent[n.rand.IntN(len(recent))]
	path := "/v1/transactions/" + t.hash.String()
	rest := func(what, method, path string) {
		n.ask(what, &wish{method: method, path: path, foreign: t.hash[:]})
	}
	switch n.rand.IntN(9) {
	case 0:
		rest("reads another's transaction", http.MethodGet, path)
	case 1:
		rest("reads another's transaction", http.MethodGet, path+"/events")
	case 2:
		rest("cancels another's transaction", http.MethodDelete, path)
	case 3:
		rest("waits for another's transaction", http.MethodGet, path+"?wait=executed&timeout=2s")
	case 4:
		n.ask("lists", &wish{method: http.MethodGet, path: "/v1/transactions?chainId=" + chainID.String() + "&limit=100"})
	case 5:
		n.ask("lists", &wish{method: http.MethodGet, path: "/v1/transactions?chainId=" + chainID.String() + "&limit=100&sender=" + t.sender.address.String()})
	case 6:
		method := []string{"eth_getTransactionByHash", "eth_getTransactionReceipt"}[n.rand.IntN(2)]
		n.ask("reads another's transaction by JSON-RPC", &wish{
			path: "/rpc", body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":["%s"]}`, method, t.hash),
		})
	case 7:
		n.ask("lists another's groups", &wish{method: http.MethodGet, path: "/v1/senders/" + t.sender.address.String() + "/groups"})
	default:
		if g := n.groupOf(); g != nil {
			n.ask("cancels another's group", &wish{
				path: fmt.Sprintf("/v1/senders/%s/groups/%s/cancel", g.sender.address, g.key.Group()),
				sign: "Signature 0x" + hex.EncodeToString(n.key.Sign(group.Digest(g.key.Group()))),
			})
		}
	}
}

// listen opens event streams without matches, and one with all events.
func (n *neighbor) listen() {
	paths := []string{"/v1/events?after=0", "/v1/events?after=0&sender=" + (chain.Address{1: 0xee}).String(), "/v1/events"}
	for range 1 + n.rand.IntN(3) {
		n.ask("listens", &wish{method: http.MethodGet, path: paths[n.rand.IntN(len(paths))], door: n.door()})
	}
}

// door is the listener for a request: one of two, where there are two.
func (n *neighbor) door() door {
	if n.world.relayed() && n.rand.IntN(2) == 0 {
		return intentsDoor
	}
	return publicDoor
}

// repeat uses the victim's Idempotency-Keys, and many of its own, so that others' may be evicted.
func (n *neighbor) repeat() {
	for i := range 5 {
		t := n.sign(n.any().key, n.freshKey(), 0, chain.Window{Before: n.unix(time.Minute, 2*time.Minute)})
		n.world.tenants.owns(hostile, t)
		key := fmt.Sprintf("hostile-%d", n.fresh)
		if i == 0 {
			key = fmt.Sprintf("key-%d", n.rand.IntN(n.world.judge.requests+1))
		}
		n.ask("uses up idempotency keys", &wish{
			path: "/v1/transactions", key: key, body: fmt.Appendf(nil, `{"chainId":%s,"transactions":["0x%x"]}`, chainID, t.raw),
		})
	}
}
