package simulation

import (
	"fmt"
	"net/http"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// rebound is a host name of the page's owner that now resolves to 127.0.0.1.
const rebound = "rebound.example"

// browse sends the requests that a page can make a browser send: under a rebound name, or from
// another origin without preflight. None of them may take effect.
func (n *neighbor) browse() {
	t := n.sign(n.any().key, n.freshKey(), 0, chain.Window{Before: n.unix(120e9, 240e9)})
	body := fmt.Appendf(nil, `{"chainId":%s,"transactions":["0x%x"]}`, chainID, t.raw)
	var r *wish
	switch n.rand.IntN(9) {
	case 0: // the name is rebound: to the browser it is the page's own origin
		r = &wish{method: http.MethodPost, path: "/v1/transactions", body: body, host: rebound, header: origin("http://"+rebound, "same-origin")}
	case 1:
		r = &wish{method: http.MethodGet, path: "/v1/transactions?limit=100", host: rebound, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
	case 2: // the same from a browser that sends no origin
		r = &wish{method: http.MethodGet, path: "/admin/keys", host: rebound, door: adminDoor}
	case 3:
		r = &wish{method: http.MethodGet, path: "/metrics", host: rebound, door: adminDoor}
	case 4: // another origin, with a request that needs no preflight
		r = &wish{method: http.MethodPost, path: "/v1/transactions", body: body, header: origin("https://evil.example", "cross-site")}
		r.header.Set("Content-Type", "text/plain")
	case 5:
		r = &wish{method: http.MethodPost, path: "/rpc", header: origin("https://evil.example", "cross-site"), body: fmt.Appendf(nil,
			`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%x"]}`, t.raw)}
	case 6:
		r = &wish{method: http.MethodPost, path: "/admin/drain", door: adminDoor, header: origin("https://evil.example", "cross-site")}
	case 7: // a script wants to read the answer
		r = &wish{method: http.MethodGet, path: "/v1/transactions?limit=100", header: origin("https://evil.example", "cross-site")}
	default:
		r = n.browseIntents()
	}
	r.what, r.from = "page", page
	n.world.faults["page: asks"]++
	r.told = func(out *recorder) bool {
		if out.status < http.StatusBadRequest || out.header.Get("Access-Control-Allow-Origin") != "" {
			n.world.judge.fail("P36", "a page reached %s %s as %q, of %q: %d %s", r.method, r.path, r.host, r.header.Get("Origin"), out.status, out.body.String())
		}
		return true
	}
	n.world.ask(r)
}

// browseIntents are the page's requests to the relay half, or to delivery without one.
func (n *neighbor) browseIntents() *wish {
	foreign := origin("https://evil.example", "cross-site")
	if !n.world.relayed() || len(n.world.wishes.recent) == 0 {
		return &wish{method: http.MethodDelete, path: "/v1/transactions/" + chain.Hash{}.String(), header: foreign}
	}
	recent := n.world.wishes.recent
	path := "/v1/intents/" + recent[n.rand.IntN(len(recent))].id.String()
	switch n.rand.IntN(3) {
	case 0: // a form without fields
		return &wish{method: http.MethodPost, path: path + "/cancel", header: foreign, door: intentsDoor}
	case 1:
		return &wish{method: http.MethodGet, path: path, host: rebound, door: intentsDoor}
	}
	body := fmt.Appendf(nil, `{"chainId":%s,"key":"page-%d","pool":"%s","to":"%s","data":"0x00"}`, chainID, n.fresh, poolName, payee)
	return &wish{method: http.MethodPost, path: "/v1/intents", body: body, host: rebound, header: origin("http://"+rebound, "same-origin"), door: intentsDoor}
}

// origin are a browser's headers about the origin of a request.
func origin(of, site string) http.Header {
	return http.Header{"Origin": {of}, "Sec-Fetch-Site": {site}}
}
