package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
)

// wish is a request that a client retries until it has an answer.
type wish struct {
	number  int
	what    string
	name    string // the same in both runs of twins
	method  string
	path    string
	key     string // Idempotency-Key
	sign    string // Authorization
	body    []byte
	items   []*signed
	expects int // the expected status, if certain
	door    door
	from    party
	header  http.Header                     // in addition to the derived headers
	host    string                          // instead of the service's own host
	foreign []byte                          // another client's data, requested by its name
	told    func(*recorder) (answered bool) // judges answers; nil: judge by the request's items

	tries   int
	first   time.Time // time of the first try
	began   time.Time
	open    bool // the current try has no answer and was not given up
	waiting int  // counts tries
}

const (
	clientPatience = 15 * time.Second
	triesMost      = 8
)

// ask starts a request.
func (w *world) ask(r *wish) {
	w.judge.requests++
	r.number, r.first = w.judge.requests, time.Now()
	if r.door == adminDoor && r.from == victim {
		r.from = operator
	}
	w.life.asked(r)
	w.try(r)
}

// try sends a request to one of the serving replicas.
func (w *world) try(r *wish) {
	r.tries++
	var serving []*replica
	for _, s := range w.seats {
		if s != nil && s.api != nil {
			serving = append(serving, s)
		}
	}
	if len(serving) == 0 || !w.healed && w.agenda.chance(w.plan.Client.Lose) {
		if len(serving) > 0 {
			w.faults["client: request lost"]++
		}
		w.again(r)
		return
	}
	to := serving[w.agenda.rand.IntN(len(serving))]
	r.open, r.began = true, time.Now()
	r.waiting++
	try := r.waiting
	ctx, cancel := context.WithTimeout(context.Background(), clientPatience)
	w.agenda.after(clientPatience+time.Second, "", func() {
		if r.open && r.waiting == try {
			r.open = false
			w.again(r)
		}
	})
	to.busy++
	w.running.Add(1)
	token := w.tenants.tokens[r.from]
	go func(api http.Handler) {
		defer w.running.Done()
		defer cancel()
		out := newRecorder()
		api.ServeHTTP(out, r.http(ctx, token))
		w.agenda.park(&call{
			by: fmt.Sprintf("client%d.%d", r.number, try), kind: telling, name: fmt.Sprintf("%s %s %d", r.method, r.path, out.status),
			done: make(chan struct{}), do: func() { w.heard(r, try, to, out) },
		})
	}(r.door.of(to))
}

// door is a replica's listener.
type door int

const (
	publicDoor  door = iota
	intentsDoor      // of the relay half
	adminDoor        // for operators
)

func (d door) of(r *replica) http.Handler {
	switch d {
	case intentsDoor:
		return r.front
	case adminDoor:
		return r.admin
	}
	return r.api
}

func (r *wish) http(ctx context.Context, token string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, r.method, "http://127.0.0.1:8420"+r.path, bytes.NewReader(r.body))
	if err != nil {
		panic(err) // the method and the path are ours
	}
	req.RequestURI, req.RemoteAddr = r.path, "127.0.0.1:40000"
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.sign != "" {
		req.Header.Set("Authorization", r.sign)
	}
	if token != "" {
		req.Header.Set("X-API-Key", token)
	}
	maps.Copy(req.Header, r.header)
	req.Host = cmp.Or(r.host, req.Host)
	return req
}

// heard receives a replica's answer, which may be lost on the way to the client.
func (w *world) heard(r *wish, try int, from *replica, out *recorder) {
	from.busy--
	w.tenants.shown(r, out)
	if from.dead.Load() || from.closed || !r.open || r.waiting != try {
		return
	}
	r.open = false
	if !w.healed && w.agenda.chance(w.plan.Client.Cut) {
		w.faults["client: answer lost"]++
		w.again(r)
		return
	}
	w.life.answered(r, out)
	if w.answered(r, out) {
		w.judge.answered++
		return
	}
	w.again(r)
}

// again repeats a request later, unchanged.
func (w *world) again(r *wish) {
	if r.tries > 1 {
		w.some["client repeats"]++
	}
	if r.tries >= triesMost && !w.healed && r.what != "submit" || w.closing {
		return
	}
	w.judge.retries++
	w.agenda.after(w.agenda.between(time.Second, 5*time.Second), "retry", func() { w.try(r) })
}

// answered judges an answer, and reports whether it is final for the client.
func (w *world) answered(r *wish, out *recorder) bool {
	w.hooks.answered(r, out)
	switch {
	case out.status == http.StatusInternalServerError:
		w.judge.fail("errors", "%s %s was answered 500: %s", r.method, r.path, out.body.String())
		return true
	case r.from >= hostile: // the hostile client does not wait for answers
		return r.told == nil || r.told(out)
	case out.status == http.StatusTooManyRequests && strings.Contains(out.body.String(), string(budget.ErrSpent)):
		w.some[spent]++
		return false
	case out.status == http.StatusTooManyRequests, out.status >= http.StatusBadGateway, out.status == http.StatusConflict && r.key != "":
		return false
	case r.expects != 0 && out.status != r.expects:
		w.judge.fail("answers", "%s %s was answered %d, not %d: %s", r.method, r.path, out.status, r.expects, out.body.String())
	}
	if r.told != nil {
		return r.told(out)
	}
	switch r.what {
	case "submit":
		return w.submitted(r, out)
	case "rpc":
		return w.rpcAnswered(r, out)
	case "read":
		w.judge.read(r, out)
	case "cancel":
		w.judge.canceled(r, out)
	}
	return true
}

// submitted records the accepted transactions. Transactions that the service could not accept
// just now are submitted again.
func (w *world) submitted(r *wish, out *recorder) bool {
	if out.status != http.StatusOK {
		return true
	}
	var answer struct {
		Results []struct {
			OK      bool       `json:"ok"`
			TxHash  chain.Hash `json:"txHash"`
			Problem struct {
				Status int    `json:"status"`
				Code   string `json:"code"`
			} `json:"problem"`
		} `json:"results"`
	}
	if err := json.Unmarshal(out.body.Bytes(), &answer); err != nil || len(answer.Results) != len(r.items) {
		w.judge.fail("answers", "%d transactions were answered by %s", len(r.items), out.body.String())
		return true
	}
	all := true
	for i, result := range answer.Results {
		switch {
		case result.OK:
			r.items[i].taken = true
			w.judge.taken(r, r.items[i], result.TxHash)
		case result.Problem.Status >= http.StatusInternalServerError:
			all = false
		}
	}
	return all
}

func (w *world) rpcAnswered(r *wish, out *recorder) bool {
	var answer struct {
		Result chain.Hash `json:"result"`
		Error  *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(out.body.Bytes(), &answer); err != nil {
		w.judge.fail("answers", "JSON-RPC was answered by %s", out.body.String())
		return true
	}
	if answer.Error == nil {
		r.items[0].taken = true
		w.judge.taken(r, r.items[0], answer.Result)
	}
	return true
}

// clients starts the load.
func (w *world) clients() {
	usual := time.Duration(float64(time.Second) / w.plan.Requests)
	// Absolute times, so that other parties' actions shift no request.
	w.load.next += w.load.between(usual/2, usual*3/2)
	w.agenda.after(w.load.next-w.agenda.now(), "client", func() {
		if w.healed {
			return
		}
		w.load.at = w.agenda.began.Add(w.load.next)
		w.clientDoes()
		w.clients()
	})
}

// clientDoes performs a random client action.
func (w *world) clientDoes() {
	l, c := w.load, w.plan.Client
	if w.plan.Twins {
		w.twinDoes()
		return
	}
	switch n := w.load.rand.Float64(); {
	case n < c.Cancel && len(l.groups) > 0:
		i := w.load.rand.IntN(len(l.groups))
		t := l.groups[i]
		l.groups = append(l.groups[:i:i], l.groups[i+1:]...)
		w.cancelGroup(t)
	case n < c.Cancel+c.Bad:
		w.bad()
	case n < c.Cancel+c.Bad+c.Duplicate/2 && len(l.recent) > 0:
		w.submit([]*signed{l.recent[w.load.rand.IntN(len(l.recent))]})
		w.faults["client: duplicate"]++
	case n > 0.94 && len(l.recent) > 0:
		t := l.recent[w.load.rand.IntN(len(l.recent))]
		w.ask(&wish{what: "read", method: http.MethodGet, path: "/v1/transactions/" + t.hash.String(), items: []*signed{t}})
	case n > 0.92 && len(l.recent) > 0:
		t := l.recent[w.load.rand.IntN(len(l.recent))]
		w.ask(&wish{what: "delete", method: http.MethodDelete, path: "/v1/transactions/" + t.hash.String()})
	case n > 0.90:
		w.ask(&wish{what: "list", method: http.MethodGet, path: "/v1/transactions?chainId=42431&limit=20"})
	default:
		w.deliver(l.batch())
	}
}

// deliver submits transactions, with the clients' faults.
func (w *world) deliver(all []*signed) {
	for _, t := range all {
		if w.load.chance(w.plan.Chain.Revert) {
			w.chain.Revert(t.hash, true)
		}
		if w.load.chance(w.plan.Chain.Foreign) && !t.key.IsExpiring() {
			w.faults["chain: nonce spent elsewhere"]++
			rival := w.load.rival(t)
			w.agenda.after(w.load.between(0, 30*time.Second), "foreign", func() {
				w.mine(rival)
			})
		}
	}
	if len(all) == 1 && w.load.chance(0.05) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%x"]}`, all[0].raw)
		w.tenants.owns(victim, all...)
		w.ask(&wish{what: "rpc", method: http.MethodPost, path: "/rpc", body: []byte(body), items: all})
		return
	}
	w.submit(all)
	if w.load.chance(w.plan.Client.Duplicate / 2) {
		w.faults["client: same request at once"]++
		w.submit(all)
	}
}

func (w *world) submit(all []*signed) {
	w.tenants.owns(victim, all...)
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = `"0x` + hex.EncodeToString(t.raw) + `"`
	}
	body := fmt.Sprintf(`{"chainId":%s,"transactions":[%s]}`, chainID, strings.Join(texts, ","))
	r := &wish{what: "submit", method: http.MethodPost, path: "/v1/transactions", body: []byte(body), items: all}
	if w.load.chance(0.3) {
		r.key = fmt.Sprintf("key-%d", w.judge.requests)
		if w.load.chance(0.1) { // another client submits the same
			w.faults["client: same key, another request"]++
			other := w.load.sign(w.load.sender(), w.load.freshKey(), 0, chain.Window{}, 1)
			w.tenants.owns(victim, other)
			w.agenda.after(w.load.between(0, 2*time.Second), "same key", func() {
				w.ask(&wish{
					what: "submit", method: http.MethodPost, path: "/v1/transactions", key: r.key, items: []*signed{other},
					body: fmt.Appendf(nil, `{"chainId":%s,"transactions":["0x%x"]}`, chainID, other.raw),
				})
			})
		}
	}
	w.ask(r)
}

// cancelGroup cancels a group as its owner.
func (w *world) cancelGroup(t *signed) {
	g := t.key.Group()
	signature := t.sender.key.Sign(group.Digest(g))
	w.ask(&wish{
		what: "cancel", method: http.MethodPost, path: fmt.Sprintf("/v1/senders/%s/groups/%s/cancel", t.sender.address, g),
		sign: "Signature 0x" + hex.EncodeToString(signature), items: t.group,
	})
}

// bad sends a request that must be refused.
func (w *world) bad() {
	w.faults["client: bad request"]++
	l := w.load
	r := &wish{what: "bad", method: http.MethodPost, path: "/v1/transactions"}
	switch w.load.rand.IntN(6) {
	case 0:
		r.body, r.expects = []byte(`{"chainId":42431,"transactions":[]}`), http.StatusBadRequest
	case 1:
		r.body, r.expects = []byte(`{"chainId":42431,"transactions":["0xzz"]`), http.StatusBadRequest
	case 2:
		r.body, r.expects = []byte(`{"chainId":42431,"transactions":["0x7600"]}`), http.StatusOK
	case 3:
		r.method, r.path, r.expects = http.MethodGet, "/v1/transactions/0x12", http.StatusBadRequest
	case 4:
		late := l.sign(l.sender(), l.freshKey(), 0, chain.Window{Before: l.unix(-2 * time.Hour)}, 1)
		w.tenants.owns(victim, late)
		r.body, r.expects = fmt.Appendf(nil, `{"chainId":42431,"transactions":["0x%x"]}`, late.raw), http.StatusOK
	default:
		r.method, r.path, r.expects = http.MethodGet, "/v1/nothing", http.StatusNotFound
	}
	w.ask(r)
}
