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
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// owed is a client's payment of one unit to an account without other payments.
type owed struct {
	client int
	payee  chain.Address
	after  time.Duration // when it is due, from the start of the load
	path   string        // where it is posted
	body   []byte
	read   string // path that shows it

	due      time.Time
	accepted time.Time // when the API answered the post
	told     time.Time // when the API's wait returned executed
	err      error
}

// bills are the payments of one run in the order of their due times: the nine clients in turn,
// and a well-behaved tenth at the same pace.
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

// bill builds the i-th payment. A payment signed here has the next nonce of the client's
// account.
func (hood *neighbourhood) bill(i, client int, nonce uint64, after time.Duration) *owed {
	o := &owed{client: client, payee: chain.Address(append(payeeMark[:], make([]byte, 8)...)), after: after}
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

// payeeGas is the gas limit of a transfer to an account without a balance.
const payeeGas = 1_000_000

// pay posts each payment at its due time, regardless of earlier ones, and follows each until the
// API reports it executed. It returns when the load is over and all payments have been followed.
func (hood *neighbourhood) pay(ctx context.Context, all []*owed) {
	var paying sync.WaitGroup
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
}

// rest sleeps, and returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// payOne posts a payment and waits for it. Every response except success is an error.
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

// judge checks the nine clients' payments on the chain and at the service.
func (hood *neighbourhood) judge(ctx context.Context, all []*owed, r *beside) {
	arrived := hood.arrivals()
	var accept, mined, told []time.Duration
	for _, o := range all {
		if o.client == goodClients {
			continue // the tenth client's payments are not measured
		}
		r.Payments++
		if o.err != nil {
			r.Errors++
			if len(r.firstErrors) < 3 {
				r.firstErrors = append(r.firstErrors, o.err)
			}
		}
		switch arrived := arrived[o.payee]; {
		case arrived.times == 0 && !o.accepted.IsZero():
			r.Lost++
		case arrived.times > 1:
			r.Double++
		}
		accept, told = appendSince(accept, o.due, o.accepted), appendSince(told, o.due, o.told)
		mined = appendSince(mined, o.due, arrived[o.payee].at)
	}
	r.Accept, r.ToMined, r.ToTold = spread(accept), spread(mined), spread(told)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, o := range all {
		if o.client != goodClients && !o.told.IsZero() && !hood.becomesFinal(ctx, o) {
			r.NeverFinal++
		}
	}
}

func appendSince(all []time.Duration, from, to time.Time) []time.Duration {
	if to.IsZero() {
		return all
	}
	return append(all, to.Sub(from))
}

// becomesFinal waits until the service reports a payment final.
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

// arrival is the number of a payee's payments on the chain, and the time of the first.
type arrival struct {
	times int
	at    time.Time
}

// arrivals finds the paid payees on the chain itself, by the receipt of each transaction sent to
// a node. A transaction without a receipt does not count.
func (hood *neighbourhood) arrivals() map[chain.Address]arrival {
	executed, seen := hood.node.Executed(), map[chain.Hash]bool{}
	all := map[chain.Address]arrival{}
	for _, d := range hood.node.Received() {
		payee, pays := payeeOf(d.Raw)
		receipt, mined := hood.node.Receipt(d.Hash)
		if !pays || !mined || receipt.Status != 1 || seen[d.Hash] {
			continue
		}
		seen[d.Hash] = true
		a := all[payee]
		if at, ok := hood.node.minedAt(d.Hash); ok && (a.at.IsZero() || at.Before(a.at)) {
			a.at = at
		}
		a.times += executed[d.Hash]
		all[payee] = a
	}
	return all
}

// payeeMark is the prefix of each payee's address, unique within a transaction.
var payeeMark = [12]byte{0x99, 0x02, 0x77, 0xbe, 0x51, 0xde} //nolint:gochecknoglobals // a constant, if arrays could be one

// payeeOf finds the payee in the signed bytes.
func payeeOf(raw []byte) (payee chain.Address, ok bool) {
	i := bytes.Index(raw, payeeMark[:])
	if i < 0 || len(raw) < i+len(payee) {
		return payee, false
	}
	return chain.Address(raw[i : i+len(payee)]), true
}
