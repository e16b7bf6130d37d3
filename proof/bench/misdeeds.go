package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// prepared is a request that only needs to be sent.
type prepared struct {
	method, url string
	body        []byte
	signature   string
}

// misdeed is one kind of request of the misbehaving client.
type misdeed struct {
	name    string
	share   int // of a hundred requests
	submits bool
	all     []prepared
	at      chan int
}

// preparedMost is the number of different requests of one kind. They are sent repeatedly: most
// are refused by the rate limit.
const preparedMost = 2000

// next returns the kind's requests in turn. It is safe for concurrent use.
func (d *misdeed) next() prepared {
	i := <-d.at
	d.at <- (i + 1) % len(d.all)
	return d.all[i]
}

// newMischief prepares all requests.
func newMischief(order floodOrder) (*mischief, error) {
	m := &mischief{floodOrder: order, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: order.Connections, MaxConnsPerHost: order.Connections,
	}}, seen: flood{Statuses: map[string]int{}, Kinds: map[string]map[string]int{}}}
	// The listener's queue accepts connections without ever responding.
	hole, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens until it is closed
	if err != nil {
		return nil, err
	}
	m.hole, m.late = hole, "http://"+hole.Addr().String()
	kinds := m.deliveryMisdeeds()
	if m.Relay != "" {
		for i := range kinds {
			kinds[i].share /= 2
		}
		kinds = append(kinds, m.relayMisdeeds()...)
	}
	for _, k := range kinds {
		k.at = make(chan int, 1)
		k.at <- 0
		for range k.share {
			m.deck = append(m.deck, k)
		}
	}
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same order every time
	dice.Shuffle(len(m.deck), func(i, j int) { m.deck[i], m.deck[j] = m.deck[j], m.deck[i] })
	return m, nil
}

func (m *mischief) close() {
	_ = m.hole.Close() // nothing was accepted
	m.client.CloseIdleConnections()
}

func devAddress(i int) chain.Address { return wallet.Dev(i).Address() }

// forger signs with a key of its own and names another account: an access-key signature
// (Keychain V2) that the account has never allowed.
// Source: tempoxyz/tempo, tt_signature.rs.
type forger struct {
	key    wallet.Secp256k1
	victim chain.Address
}

func (f forger) Address() chain.Address { return f.victim }

func (f forger) Sign(digest chain.Hash) []byte {
	const keychainV2 = 0x04
	inner := f.key.Sign(chain.Keccak([]byte{keychainV2}, digest[:], f.victim[:]))
	return append(append([]byte{keychainV2}, f.victim[:]...), inner...)
}

// throwAway is a key without funds.
func throwAway(i int) wallet.Secp256k1 {
	key, err := wallet.NewSecp256k1(chain.Keccak([]byte("throw away"), binary.BigEndian.AppendUint64(nil, uint64(i)))) //nolint:gosec // a small number
	if err != nil {
		panic(err) // once in 2^128
	}
	return key
}

// pays signs a payment of one unit to the misbehaving client itself.
func pays(key wallet.Key, t wallet.Tempo) []byte {
	t.Calls = []chain.Call{wallet.Transfer(wallet.PathUSD, devAddress(goodClients), 1)}
	return rig.Pay(key, t).Raw
}

// aKey is a nonce key derived from series and i.
func aKey(series byte, i int) chain.NonceKey {
	key := chain.NonceKey{1: 0x66, 2: series}
	binary.BigEndian.PutUint64(key[24:], uint64(i)+1) //nolint:gosec // a small number
	return key
}

// ownGroup is the nonce key of a group of the misbehaving client.
func ownGroup() chain.NonceKey {
	return chain.NonceKey{'N', 'K', 'G', '1', 0x01, 0x02, 16: 0x66, 31: 1}
}

func (m *mischief) post(path string, body []byte) prepared {
	return prepared{method: http.MethodPost, url: path, body: body}
}

// submits posts signed transactions in one request.
func (m *mischief) submits(raws ...[]byte) prepared {
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = `"0x` + hex.EncodeToString(raw) + `"`
	}
	return m.post(m.Delivery+"/v1/transactions", fmt.Appendf(nil, `{"chainId":%d,"transactions":[%s]}`, rig.TempoChain, strings.Join(texts, ",")))
}

func many(n int, of func(i int) prepared) []prepared {
	all := make([]prepared, n)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

// deliveryMisdeeds are the kinds of requests to delivery's API.
func (m *mischief) deliveryMisdeeds() []*misdeed {
	own := wallet.Dev(goodClients)
	now := time.Now()
	far := chain.Window{After: uint64(now.Add(30 * 24 * time.Hour).Unix())} //nolint:gosec // a time of today
	soon := chain.Window{After: uint64(now.Add(m.Lasts / 2).Unix())}        //nolint:gosec // a time of today
	forge := func(i int, nonce uint64, w chain.Window) []byte {
		return pays(forger{throwAway(i), m.Victims[i%len(m.Victims)]}, wallet.Tempo{Nonce: nonce, Window: w})
	}
	return append([]*misdeed{
		{name: "far ahead in time", share: 16, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.submits(pays(own, wallet.Tempo{NonceKey: aKey(1, i), Window: far}))
		})},
		{name: "far ahead in time, 20 at once", share: 4, submits: true, all: many(preparedMost/20, func(i int) prepared {
			var raws [][]byte
			for n := range 20 {
				raws = append(raws, pays(own, wallet.Tempo{NonceKey: aKey(2, 20*i+n), Window: far}))
			}
			return m.submits(raws...)
		})},
		{name: "claims of others' accounts, far ahead", share: 10, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.submits(forge(i, uint64(i%40), far)) //nolint:gosec // a small number
		})},
		{name: "claims of others' accounts, now", share: 8, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.submits(forge(i, uint64(i%40), chain.Window{})) //nolint:gosec // a small number
		})},
		{name: "nonces far ahead", share: 8, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.submits(pays(own, wallet.Tempo{NonceKey: aKey(3, i%10), Nonce: uint64(1 + i)})) //nolint:gosec // a small number
		})},
		{name: "below the base fee, all due at once", share: 10, submits: true, all: many(preparedMost, func(i int) prepared {
			t := wallet.Tempo{NonceKey: aKey(4, i), Window: soon, Chain: rig.TempoChain, Gas: payeeGas, MaxFee: 1, MaxPriorityFee: 1}
			t.Calls = []chain.Call{wallet.Transfer(wallet.PathUSD, devAddress(goodClients), 1)}
			return m.submits(t.Sign(own))
		})},
		{name: "good payments", share: 2, submits: true, all: many(preparedMost/4, func(i int) prepared {
			return m.submits(pays(own, wallet.Tempo{NonceKey: aKey(5, i)}))
		})},
		{name: "members of an own group", share: 6, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.submits(pays(own, wallet.Tempo{NonceKey: ownGroup(), Nonce: uint64(i), Window: far})) //nolint:gosec // a small number
		})},
	}, m.smallMisdeeds(own, ownGroup().Group())...)
}

// smallMisdeeds are requests that submit nothing.
func (m *mischief) smallMisdeeds(own wallet.Secp256k1, g chain.GroupID) []*misdeed {
	zeros := bytes.Repeat([]byte("0,"), 1<<19)
	zeros[0], zeros[len(zeros)-1] = '[', ']'
	zeros[1] = '0'
	var junk []string
	for i := range 100 {
		junk = append(junk, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getTransactionByHash","params":["0x%064x"]}`, i, i), `{"id":[]}`, `"x"`)
	}
	cancel := prepared{
		method: http.MethodPost, url: fmt.Sprintf("%s/v1/senders/%s/groups/%s/cancel", m.Delivery, own.Address(), g),
		signature: "0x" + hex.EncodeToString(own.Sign(group.Digest(g))),
	}
	rpc := fmt.Sprintf("%s/rpc/%d", m.Delivery, rig.TempoChain)
	return []*misdeed{
		{name: "JSON-RPC of 1 MiB of zeros", share: 6, all: []prepared{m.post(rpc, zeros)}},
		{name: "JSON-RPC batches of junk", share: 6, all: []prepared{m.post(rpc, []byte("["+strings.Join(junk, ",")+"]"))}},
		{name: "reads of others' payments", share: 10, all: many(len(m.Reads), func(i int) prepared {
			return prepared{method: http.MethodGet, url: m.Delivery + m.Reads[i]}
		})},
		{name: "lists of others' payments", share: 4, all: many(len(m.Victims), func(i int) prepared {
			return prepared{method: http.MethodGet, url: m.Delivery + "/v1/transactions?sender=" + m.Victims[i].String()}
		})},
		{name: "the same group canceled", share: 6, all: []prepared{cancel}},
		{name: "no JSON", share: 4, all: []prepared{
			m.post(m.Delivery+"/v1/transactions", bytes.Repeat([]byte("["), 100_000)),
			m.post(m.Delivery+"/v1/transactions", []byte(`{"chainId":1e999,"transactions":[]}`)),
		}},
	}
}

// relayMisdeeds are the kinds of requests to the relay's API.
func (m *mischief) relayMisdeeds() []*misdeed {
	call := wallet.Transfer(wallet.PathUSD, devAddress(goodClients), 1)
	asks := func(key, more string) prepared {
		return m.post(m.Relay+"/v1/intents", fmt.Appendf(nil, `{"chainId":%d,"key":%q,"pool":%q,"to":%q,"data":"0x%x","gas":{"limit":%d}%s}`,
			rig.TempoChain, key, relayPool, call.To, call.Input, payeeGas, more))
	}
	named := func(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }
	return []*misdeed{
		{name: "intents", share: 8, submits: true, all: many(preparedMost, func(i int) prepared { return asks(named("plain", i), "") })},
		{name: "ordered intents, 20 rows", share: 8, submits: true, all: many(preparedMost, func(i int) prepared {
			return asks(named("ordered", i), fmt.Sprintf(`,"orderingKey":"row-%d"`, i%20))
		})},
		{name: "intents on lanes of their own", share: 10, submits: true, all: many(preparedMost, func(i int) prepared {
			return asks(named("lane", i), fmt.Sprintf(`,"orderingKey":"lane-%d","nonceKey":{"mode":"ordered"}`, i))
		})},
		{name: "intents with dead receivers", share: 8, submits: true, all: many(preparedMost, func(i int) prepared {
			return asks(named("told", i), fmt.Sprintf(`,"webhooks":["%s/%d","http://127.0.0.1:9/%d"]`, m.late, i, i))
		})},
		{name: "intents that offer too little", share: 2, submits: true, all: many(preparedMost, func(i int) prepared {
			return m.post(m.Relay+"/v1/intents", fmt.Appendf(nil, `{"chainId":%d,"key":%q,"pool":%q,"to":%q,"data":"0x%x","gas":{"limit":%d,"maxFeePerGas":"1"}}`,
				rig.TempoChain, named("cheap", i), relayPool, call.To, call.Input, payeeGas))
		})},
		{name: "intents beyond all money", share: 6, submits: true, all: many(preparedMost, func(i int) prepared {
			poor := wallet.Transfer(wallet.PathUSD, devAddress(0), 1)
			uint256.NewInt(0).Not(uint256.NewInt(0)).PutUint256(poor.Input[36:])
			return m.post(m.Relay+"/v1/intents", fmt.Appendf(nil, `{"chainId":%d,"key":%q,"pool":%q,"to":%q,"data":"0x%x","simulate":true}`,
				rig.TempoChain, named("poor", i), relayPool, poor.To, poor.Input))
		})},
		{name: "reads and cancels of others' intents", share: 8, all: many(2*len(m.Reads), func(i int) prepared {
			if i%2 == 0 {
				return prepared{method: http.MethodGet, url: m.Relay + m.Reads[i/2]}
			}
			return m.post(m.Relay+m.Reads[i/2]+"/cancel", []byte("{}"))
		})},
	}
}

// holds are requests that occupy connections: a stream without matches, a long wait, and a body
// sent byte by byte.
func (m *mischief) holds(i int) []func(context.Context) {
	url, nothing, wait := m.Delivery, "&name=nothing", m.Delivery+m.Reads[i]+"?wait=executed&timeout=30"
	if m.Relay != "" {
		wait = m.Relay + m.Reads[i] + "?wait=mined&timeout=30"
	}
	if m.Relay != "" && i%2 == 0 {
		url, nothing = m.Relay, "" // the relay's events have no names; a client sees only its own
	}
	held := func(kind string, r prepared) func(context.Context) {
		return func(ctx context.Context) {
			// Opened repeatedly: each opening reads the log from its beginning.
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			status, _, err := m.ask(ctx, r)
			if err == nil || ctx.Err() == nil {
				m.answered(kind, status, 0)
			}
		}
	}
	all := []func(context.Context){
		held("streams of nothing", prepared{method: http.MethodGet, url: url + "/v1/events?after=0" + nothing}),
		held("waits", prepared{method: http.MethodGet, url: wait}),
		func(ctx context.Context) { m.slowBody(ctx, url) },
	}
	if m.Relay != "" && i%2 == 0 { // each takes as long as a receiver may
		all[1] = held("webhooks tried", m.post(m.Relay+"/v1/webhooks/try", fmt.Appendf(nil, `{"url":"%s/%d"}`, m.late, i)))
	}
	return all
}

// slowBody posts a body a byte at a time until the service closes the connection.
func (m *mischief) slowBody(ctx context.Context, url string) {
	l, err := dial(ctx, url)
	if err != nil {
		return
	}
	defer l.conn.Close() //nolint:errcheck // nothing is under way
	defer context.AfterFunc(ctx, l.hurry)()
	head := fmt.Sprintf("POST /v1/transactions HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
		strings.TrimPrefix(url, "http://"), m.Token)
	if _, err := l.conn.Write([]byte(head)); err != nil {
		return
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for rest(writing, 200*time.Millisecond) {
			if _, err := l.conn.Write([]byte(" ")); err != nil {
				return
			}
		}
	}()
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		if ctx.Err() == nil {
			m.answered("slow bodies", 0, 0)
		}
		return
	}
	_ = res.Body.Close() // the connection is closed next
	m.answered("slow bodies", res.StatusCode, 0)
}
