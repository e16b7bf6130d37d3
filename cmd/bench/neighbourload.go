package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// owed is a payment of one unit to an account that nobody else pays, by a client.
type owed struct {
	client int
	payee  chain.Address
	after  time.Duration // when it is due, from the start of the load
	path   string        // that it is posted to
	body   []byte
	read   string // path that shows it

	due      time.Time
	accepted time.Time // when the API answered the post
	told     time.Time // when the API's wait returned executed
	err      error
}

// bills are the payments of one run in the order of their due times: the nine clients
// in turn, and a well-behaved tenth at the pace of each of them.
func (hood *neighbourhood) bills(flooded bool) (all []*owed) {
	every := time.Second / time.Duration(hood.rate)
	nonces := make([]uint64, goodClients+1)
	for i := range int(hood.lasts / every) {
		client := i % goodClients
		all = append(all, hood.bill(len(all), client, nonces[client], time.Duration(i)*every))
		nonces[client]++
		if client == goodClients-1 && !flooded { // in the middle between two of the others
			all = append(all, hood.bill(len(all), goodClients, nonces[goodClients], time.Duration(i)*every+every/2))
			nonces[goodClients]++
		}
	}
	return all
}

// bill makes the i-th payment. One that is signed here has the next nonce of the client's
// account.
func (hood *neighbourhood) bill(i, client int, nonce uint64, after time.Duration) *owed {
	o := &owed{client: client, payee: chain.Address{0: 0x99, 1: 0x02}, after: after}
	binary.BigEndian.PutUint64(o.payee[12:], uint64(i)) //nolint:gosec // a small number
	call := wallet.Transfer(wallet.PathUSD, o.payee, 1)
	if hood.relay {
		o.path = "/v1/intents"
		o.body = fmt.Appendf(nil, `{"chainId":%d,"key":%q,"pool":%q,"to":%q,"data":"0x%x","gas":{"limit":%d}}`,
			rig.TempoChain, o.payee, relayPool, call.To, call.Input, payeeGas)
		o.read = "/v1/intents/" + intent.ID(clientName(client), intent.From{Pool: relayPool}, o.payee.String()).String()
		return o
	}
	p := rig.Pay(wallet.Dev(client), wallet.Tempo{Nonce: nonce, Calls: []chain.Call{call}})
	o.path = "/v1/transactions"
	o.body = fmt.Appendf(nil, `{"chainId":%d,"transactions":["0x%s"]}`, rig.TempoChain, hex.EncodeToString(p.Raw))
	o.read = "/v1/transactions/" + p.Hash.String()
	return o
}

// payeeGas is the gas limit of a transfer to an account that holds nothing yet.
const payeeGas = 1_000_000

// pay posts each payment at its due time, whatever became of those before, and follows
// each until the API says that it was executed. It returns when the load is over and all
// payments have been followed.
func (hood *neighbourhood) pay(ctx context.Context, all []*owed) {
	watching, stop := context.WithCancel(ctx)
	hood.seen = &arrivals{node: hood.anvil.URL(), at: map[chain.Address]time.Time{}}
	var watcher, paying sync.WaitGroup
	watcher.Go(func() { hood.seen.watch(watching) })
	defer watcher.Wait()
	defer stop()
	start := time.Now()
	for _, o := range all {
		o.due = start.Add(o.after)
		if !rest(ctx, time.Until(o.due)) {
			return
		}
		paying.Go(func() { o.err = hood.payOne(ctx, o) })
	}
	rest(ctx, time.Until(start.Add(hood.lasts)))
	paying.Wait()
	// What the API has told stands on the chain; the watcher is a moment behind.
	for deadline := time.Now().Add(unseenMost); !hood.seen.has(all) && time.Now().Before(deadline); {
		if !rest(ctx, sightEvery) {
			return
		}
	}
}

// rest waits, unless ctx ends before.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// payOne posts a payment and waits for it. Every answer but a success is an error.
func (hood *neighbourhood) payOne(ctx context.Context, o *owed) error {
	status, answer, err := hood.ask(ctx, o.client, http.MethodPost, o.path, o.body)
	if err != nil {
		return err
	}
	o.accepted = time.Now()
	if hood.relay {
		_, err = relaying{}.read(status, answer)
	} else {
		_, err = delivery{}.read(status, answer)
	}
	if err != nil {
		return err
	}
	milestone := "executed"
	if hood.relay {
		milestone = "mined"
	}
	for deadline := o.due.Add(unseenMost); time.Now().Before(deadline); {
		status, answer, err := hood.ask(ctx, o.client, http.MethodGet, o.read+"?timeout=20&wait="+milestone, nil)
		if err != nil {
			return err
		}
		var shown struct {
			Waited struct{ Reached bool }
		}
		if err := json.Unmarshal(answer, &shown); err != nil || status >= http.StatusBadRequest {
			return fmt.Errorf("GET %s answered %d: %.300s", o.read, status, answer)
		}
		if shown.Waited.Reached {
			o.told = time.Now()
			return nil
		}
		if !rest(ctx, sightEvery) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s was not %s within %s", o.read, milestone, unseenMost)
}

// ask sends one request with a client's key.
func (hood *neighbourhood) ask(ctx context.Context, client int, method, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, hood.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+hood.tokens[client])
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := hood.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// judge asks the chain and the service what became of the nine clients' payments.
func (hood *neighbourhood) judge(ctx context.Context, all []*owed, r *beside) error {
	var accept, mined, told []time.Duration
	for _, o := range all {
		if o.client == goodClients {
			continue // the tenth's are not measured
		}
		r.Payments++
		if o.err != nil {
			r.Errors++
			if len(r.firstErrors) < 3 {
				r.firstErrors = append(r.firstErrors, o.err)
			}
		}
		units, err := rig.Balance(ctx, hood.anvil.URL(), wallet.PathUSD, o.payee)
		if err != nil {
			return err
		}
		switch {
		case units == 0 && !o.accepted.IsZero():
			r.Lost++
		case units > 1:
			r.Double++
		}
		accept, told = appendSince(accept, o.due, o.accepted), appendSince(told, o.due, o.told)
		if at, ok := hood.seen.of(o.payee); ok {
			mined = appendSince(mined, o.due, at)
		}
	}
	r.Accept, r.ToMined, r.ToTold = spread(accept), spread(mined), spread(told)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, o := range all {
		if o.client != goodClients && !o.told.IsZero() && !hood.becomesFinal(ctx, o) {
			r.NeverFinal++
		}
	}
	return nil
}

func appendSince(all []time.Duration, from, to time.Time) []time.Duration {
	if to.IsZero() {
		return all
	}
	return append(all, to.Sub(from))
}

// becomesFinal waits until the service calls a payment final.
func (hood *neighbourhood) becomesFinal(ctx context.Context, o *owed) bool {
	for {
		var shown struct {
			Status    string
			Finalized bool
		}
		status, answer, err := hood.ask(ctx, o.client, http.MethodGet, o.read, nil)
		if err == nil && status == http.StatusOK && json.Unmarshal(answer, &shown) == nil &&
			(shown.Finalized || shown.Status == string(intent.StatusCompleted)) {
			return true
		}
		if !rest(ctx, sightEvery) {
			return false
		}
	}
}

// arrivals are the times at which each payee was first seen paid, by somebody who asks
// the chain itself for each block's transfers.
type arrivals struct {
	node string
	next uint64 // block to look at

	mu sync.Mutex
	at map[chain.Address]time.Time
}

// watch looks at new blocks until ctx ends.
func (a *arrivals) watch(ctx context.Context) {
	for {
		for a.look(ctx) {
			a.next++
		}
		if !rest(ctx, sightEvery) {
			return
		}
	}
}

// look reads the next block's transfers. It returns false while there is no such block.
func (a *arrivals) look(ctx context.Context) bool {
	number := "0x" + strconv.FormatUint(a.next, 16)
	var block *struct{ Hash chain.Hash }
	if rig.Call(ctx, a.node, &block, "eth_getBlockByNumber", number, false) != nil || block == nil {
		return false
	}
	now := time.Now()
	var logs []struct{ Topics []chain.Hash }
	// Source: ERC-20, event Transfer(address indexed from, address indexed to, uint256).
	transfer := chain.Keccak([]byte("Transfer(address,address,uint256)"))
	filter := map[string]any{"fromBlock": number, "toBlock": number, "address": wallet.PathUSD, "topics": []any{transfer}}
	if rig.Call(ctx, a.node, &logs, "eth_getLogs", filter) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range logs {
		if len(l.Topics) < 3 {
			continue
		}
		to := chain.Address(l.Topics[2][12:])
		if _, again := a.at[to]; !again {
			a.at[to] = now
		}
	}
	return true
}

func (a *arrivals) of(payee chain.Address) (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok = a.at[payee]
	return at, ok
}

// has reports whether each payment that the API has told to be executed was seen.
func (a *arrivals) has(all []*owed) bool {
	for _, o := range all {
		if _, ok := a.of(o.payee); !ok && !o.told.IsZero() {
			return false
		}
	}
	return true
}
