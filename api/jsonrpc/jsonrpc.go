// Package jsonrpc serves wallets and libraries with the JSON-RPC 2.0 interface of a node
// (https://www.jsonrpc.org/specification): clients only change the URL. The service stores and
// delivers transactions that are sent, reads come from a healthy node of the chain, and all
// other methods are refused.
//
// Errors use the codes and wording of go-ethereum where it has any, because wallets match them.
// Their data is the problem with which the REST API would have answered. docs/reference/jsonrpc.md lists
// the methods.
//
// A route of delivery brings the requests, as package rpcroute says. Of the packages of api this one
// imports rest and rpcroute.
package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Config holds the settings and dependencies of the endpoint.
type Config struct {
	// Submit gives the log, vault and decoders to read. Each request brings its own
	// [rpcroute.Request] Submit to accept transactions.
	Submit *commands.Submit
	// Proxies sends calls to the nodes of each chain that is served.
	Proxies map[chain.ID]Proxy
	// Await returns a transaction's state as soon as done returns true for it, or the context's
	// error with the last state.
	Await func(ctx context.Context, id chain.ID, hash chain.Hash, done func(tx.State) bool) (tx.State, error)
	// NextFree is the first nonce of a sequence, at or after from, without a transaction that
	// was accepted before the call and may still be mined. Only transactions that one of the
	// clients submitted first count; nil counts all. Each query of the store takes a place.
	NextFree func(ctx context.Context, s chain.Sequence, from uint64, clients []string, place rest.Place) (uint64, error)
	// Fields returns the fields of signed bytes that clients expect and [chain.Signed] does not
	// have: the signature, the access list. They are named as in JSON-RPC.
	Fields func(raw []byte) (map[string]any, error)
	// Client is the answer to web3_clientVersion.
	Client string
	Limits Limits
	// Submitted, when set, is called for each raw transaction with its outcome: accepted,
	// known, refused or failed.
	Submitted func(outcome string)
	// Methods are methods that another package answers. One with the name of a method of this package
	// is answered instead.
	Methods map[string]Method
	// Admit, when set, returns why no call of a request is answered: the chain is served, but not the
	// rest of the path, or not for this client.
	Admit func(r rpcroute.Request, id chain.ID) error
	// Show, when set, changes how eth_getTransactionByHash shows a transaction.
	Show func(transaction json.RawMessage) json.RawMessage
	// SentAs, when set, returns the hash of the transaction that was mined in place of a client's
	// transaction, and has the same effect. ok is false if none is known.
	SentAs func(ctx context.Context, r rpcroute.Request, id chain.ID, hash chain.Hash) (sent chain.Hash, ok bool, err error)
}

// Proxy sends a client's calls to a healthy node of one chain.
type Proxy interface {
	// Ask returns a node's result as the node wrote it. The result has at most limit bytes.
	// usable, if not nil, selects the result; if no node has a usable one, another is returned.
	// Errors have one of three methods. Declined: the node's own error. Limit: the result was
	// too large. Withheld: the named limit on calls to nodes kept the call from being made.
	// Clients take turns; all requests without a key are one client, without a name.
	Ask(ctx context.Context, client, method string, params json.RawMessage, limit int64, usable func(result json.RawMessage) bool) (json.RawMessage, error)
}

// Limits bound the resources that one request can use.
type Limits struct {
	BatchItems       int           // calls in one request
	Parallel         int           // calls of one request answered concurrently
	TransactionBytes int           // size of one raw transaction
	AnswerBytes      int64         // total size of the results of one request
	HeldBytes        int64         // total size of unsent results of all requests, beyond [smallAnswer] per request; one client may hold a quarter
	CallTimeout      time.Duration // for one call, without the wait for a receipt that a client asks for
	// SyncDefault is how long eth_sendRawTransactionSync waits for a receipt unless the client
	// sets a timeout. SyncMax is the longest timeout.
	SyncDefault, SyncMax time.Duration
}

// DefaultLimits returns limits for an endpoint that is open to the internet. The waits are
// go-ethereum's.
func DefaultLimits() Limits {
	return Limits{
		BatchItems: 100, Parallel: 8, TransactionBytes: 128 << 10, AnswerBytes: 10 << 20, HeldBytes: 128 << 20,
		CallTimeout: 10 * time.Second, SyncDefault: 20 * time.Second, SyncMax: time.Minute,
	}
}

// New returns the handler of /rpc. It panics if the configuration cannot work.
func New(c Config) rpcroute.Endpoint {
	l := c.Limits
	if min(l.BatchItems, l.Parallel, l.TransactionBytes) <= 0 || min(l.CallTimeout, l.SyncDefault, l.SyncMax) <= 0 || min(l.AnswerBytes, l.HeldBytes) <= 0 {
		panic("jsonrpc: a limit is not set")
	}
	s := &server{Config: c, held: newBudgets(l.HeldBytes)}
	return rpcroute.Endpoint{Answer: s.answer, Within: l.SyncMax + 2*l.CallTimeout}
}

// server is the configuration plus shared state. The RPC methods are its methods.
type server struct {
	Config
	held *budgets // results that are not sent yet; clients may read slowly
}

// exchange is one request, with the state that its calls share.
type exchange struct {
	request  rpcroute.Request
	batch    bool
	chain    chain.ID
	proxy    Proxy
	err      error  // set if the chain of the path is not served
	client   string // the client that sent the request
	submit   *commands.Submit
	shows    func(context.Context, tx.State) (bool, error)
	search   func() (absent func(context.Context))
	counts   func(chain.Address) rpcroute.Counts
	decode   func(ctx context.Context, read func(context.Context) ([]byte, error), decode func(raw []byte) (text []byte, err error)) (text []byte, err error)
	nextFree func(ctx context.Context, from uint64, read func(ctx context.Context, place rest.Place) (uint64, error)) (uint64, error)
	weigh    func(bytes int)
	rest     func() (leave func(), ok bool)
	again    func() bool
	meta     eventlog.Meta
	problem  func(error) rest.Problem
	room     *budget
	held     *holding
}

// answer answers a request, one call or a batch; nil if it holds only notifications. The answer
// counts as held until ctx ends.
func (s *server) answer(ctx context.Context, r rpcroute.Request) ([]byte, error) {
	calls, batch, refused, err := parse(r.Body, s.Limits.BatchItems, r.Charge)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return encode(nil, nil, refused), nil
	}
	x := &exchange{request: r, batch: batch, client: r.Client, submit: r.Submit, shows: r.Shows, search: r.Search, counts: r.Counts, decode: r.Decode, nextFree: r.NextFree, weigh: r.Weigh, rest: r.Rest, again: r.Again, meta: r.Meta, problem: r.Problem, room: &budget{left: s.Limits.AnswerBytes}, held: s.held.hold(r.Client)}
	context.AfterFunc(ctx, x.held.release)
	x.chain, x.err = s.chain(r.Chain)
	x.proxy = s.Proxies[x.chain]
	if x.err == nil && s.Admit != nil {
		x.err = s.Admit(r, x.chain)
	}
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

// chain is the chain in the path, or the only chain if the path has none.
func (s *server) chain(name string) (chain.ID, error) {
	ids := slices.Sorted(maps.Keys(s.Proxies))
	if name == "" && len(ids) == 1 {
		return ids[0], nil
	}
	if name != "" {
		id, err := chainOf(name)
		if _, served := s.Proxies[id]; err == nil && served {
			return id, nil
		}
	}
	all := commands.Listed(maps.Keys(s.Proxies))
	if name == "" {
		return 0, commands.ErrUnsupportedChain.Because("several chains are served here: post to /rpc/{chainId} with one of %s", all)
	}
	return 0, commands.ErrUnsupportedChain.Because("the chain of this path is not served here; served: %s", all)
}

// chainOf reads the chain in a path: a number, or CAIP-2.
func chainOf(name string) (chain.ID, error) {
	text, err := url.PathUnescape(name)
	if err != nil {
		return 0, err
	}
	return chain.ParseNamed(text)
}

// inParallel calls do for 0 to n-1, at most atOnce concurrently. If a call panics, inParallel
// panics after all calls have ended.
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
