// Package jsonrpc lets wallets and libraries speak to the service as they speak to
// a node: JSON-RPC 2.0 (https://www.jsonrpc.org/specification), by changing the URL
// alone. What is sent is kept and delivered by the service; what is read comes from
// a healthy node of the chain; everything else is refused.
//
// Errors carry the codes and the words that go-ethereum uses, where it has any,
// because wallets look for them, and as data the problem that the REST API would
// have answered with. docs/jsonrpc.md lists the methods.
package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Config is what the endpoint is made from.
type Config struct {
	// Submit is whose log, vault and decoders are read. What takes transactions on
	// comes with each request.
	Submit *commands.Submit
	// Proxies puts calls to the nodes of each chain that is served.
	Proxies map[chain.ID]Proxy
	// Await returns a transaction's state as soon as done is satisfied with it, or
	// the context's error with the last state.
	Await func(ctx context.Context, id chain.ID, hash chain.Hash, done func(tx.State) bool) (tx.State, error)
	// NextFree is the first nonce of a sequence, from the given one on, that no
	// transaction has that was accepted before the call and may still be mined. Of the
	// transactions those count that one of the clients submitted first; nil counts all.
	NextFree func(ctx context.Context, s chain.Sequence, from uint64, clients []string) (uint64, error)
	// Fields says of signed bytes what [chain.Signed] does not keep and clients want
	// to see: the signature, the access list. Named as in JSON-RPC.
	Fields func(raw []byte) (map[string]any, error)
	// Client is the answer to web3_clientVersion.
	Client string
	Limits Limits
	// Submitted, when set, is told what became of each raw transaction: accepted,
	// known, refused or failed.
	Submitted func(outcome string)
}

// Proxy puts a client's call to a healthy node of one chain.
type Proxy interface {
	// Ask returns a node's result as the node wrote it: one of at most limit bytes
	// that usable (which may be nil) takes, unless no node has one. An error with
	// the method Declined is a node's own error; one with the method Limit says
	// that the result was too large; one with the method Withheld, which limit on
	// calls to nodes kept it from being asked. Clients take turns; those without keys
	// are one, without a name.
	Ask(ctx context.Context, client, method string, params json.RawMessage, limit int64, usable func(result json.RawMessage) bool) (json.RawMessage, error)
}

// Limits bound what one request can make the service do.
type Limits struct {
	BatchItems       int           // calls in one request
	Parallel         int           // calls of one request that are answered at once
	TransactionBytes int           // of one raw transaction
	AnswerBytes      int64         // of all results of one request together
	HeldBytes        int64         // of all requests' results, beyond [smallAnswer] of each, until they are sent; of one client a quarter of it
	CallTimeout      time.Duration // for one call, save for what a client waits on purpose
	// SyncDefault and SyncMax bound how long eth_sendRawTransactionSync waits for a
	// receipt: unless the client says, and at most.
	SyncDefault, SyncMax time.Duration
}

// DefaultLimits are those of an endpoint that strangers can reach. The waits are
// go-ethereum's.
func DefaultLimits() Limits {
	return Limits{
		BatchItems: 100, Parallel: 8, TransactionBytes: 128 << 10, AnswerBytes: 10 << 20, HeldBytes: 128 << 20,
		CallTimeout: 10 * time.Second, SyncDefault: 20 * time.Second, SyncMax: time.Minute,
	}
}

// New makes what answers /rpc. A configuration that cannot work panics.
func New(c Config) api.RPC {
	l := c.Limits
	if min(l.BatchItems, l.Parallel, l.TransactionBytes) <= 0 || min(l.CallTimeout, l.SyncDefault, l.SyncMax) <= 0 || min(l.AnswerBytes, l.HeldBytes) <= 0 {
		panic("jsonrpc: a limit is not set")
	}
	s := &server{Config: c, held: newBudgets(l.HeldBytes)}
	return api.RPC{Answer: s.answer, Within: l.SyncMax + 2*l.CallTimeout}
}

// server is the configuration with the methods.
type server struct {
	Config
	held *budgets // for what is on its way to clients, who may be slow to take it
}

// exchange is one request with what its calls share.
type exchange struct {
	chain   chain.ID
	proxy   Proxy
	err     error  // why there is no such chain here
	client  string // that sent the request
	submit  *commands.Submit
	shows   func(context.Context, tx.State) (bool, error)
	counts  func(chain.Address) api.Counts
	rest    func() (leave func(), ok bool)
	meta    event.Meta
	problem func(error) api.Problem
	room    *budget
	held    *holding
}

// answer answers a request, one call or a batch; nil when nobody wants an answer. It
// counts as held until ctx ends.
func (s *server) answer(ctx context.Context, r api.RPCRequest) ([]byte, error) {
	calls, batch, refused, err := parse(r.Body, s.Limits.BatchItems, r.Charge)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return encode(nil, nil, refused), nil
	}
	x := &exchange{client: r.Client, submit: r.Submit, shows: r.Shows, counts: r.Counts, rest: r.Rest, meta: r.Meta, problem: r.Problem, room: &budget{left: s.Limits.AnswerBytes}, held: s.held.hold(r.Client)}
	context.AfterFunc(ctx, x.held.release)
	x.chain, x.err = s.chain(r.Chain)
	x.proxy = s.Proxies[x.chain]
	answers := make([][]byte, len(calls))
	inParallel(len(calls), s.Limits.Parallel, func(i int) { answers[i] = s.one(ctx, x, calls[i]) })

	answers = slices.DeleteFunc(answers, func(a []byte) bool { return a == nil })
	switch {
	case len(answers) == 0:
		return nil, nil
	case !batch:
		return answers[0], nil
	}
	size := 2
	for _, a := range answers {
		size += len(a) + 1
	}
	all := append(make([]byte, 0, size), '[')
	for i, a := range answers {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, a...)
	}
	return append(all, ']'), nil
}

// one answers one call; nil for a notification.
func (s *server) one(ctx context.Context, x *exchange, c call) []byte {
	if c.refused != nil {
		return encode(c.id, nil, c.refused)
	}
	result, refused := s.dispatch(ctx, x, c)
	switch {
	case c.id == nil:
		return nil
	case refused == nil && !x.room.take(int64(len(result))):
		refused = tooLarge()
	case refused == nil && !x.held.take(int64(len(result))):
		refused = noRoom()
	}
	return encode(c.id, result, refused)
}

// chain is the chain that a path names, or the only one.
func (s *server) chain(name string) (chain.ID, error) {
	ids := slices.Sorted(maps.Keys(s.Proxies))
	if name == "" && len(ids) == 1 {
		return ids[0], nil
	}
	if name != "" {
		id, err := chain.ParseID(name)
		if _, served := s.Proxies[id]; err == nil && served {
			return id, nil
		}
	}
	all := commands.Listed(maps.Keys(s.Proxies))
	if name == "" {
		return 0, commands.ErrUnsupportedChain.Because("several chains are served here: post to /rpc/{chainId}, which is one of %s", all)
	}
	return 0, commands.ErrUnsupportedChain.Because("the chain of this path is not served here; served: %s", all)
}

// inParallel calls do for 0 to n-1, at most so many at once. A panic in one is
// raised here, when the others have ended.
func inParallel(n, atOnce int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var working sync.WaitGroup
	var mu sync.Mutex
	var cause any
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		working.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					cause = fmt.Sprintf("call %d: %v", i, p)
					mu.Unlock()
				}
				<-slots
			}()
			do(i)
		})
	}
	working.Wait()
	if cause != nil {
		panic(cause)
	}
}
