package simulation

import (
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// want submits intents: more than a lane's budget, in lanes of its own, and with webhooks to
// receivers that never answer.
func (n *neighbor) want() {
	for range 1 + n.rand.IntN(4) {
		n.count++
		data := binary.BigEndian.AppendUint64(nil, n.count)
		own := chain.Keccak(data, []byte("hostile"))
		data = append(data, own[:24]...)
		r := intent.Request{
			Client: n.world.tenants.names[hostile], Key: fmt.Sprintf("wish-%d", n.count), // like the victim's keys
			Chain: chainID, From: intent.From{Pool: poolName},
		}
		to := payee
		if n.plan.LeftOut > 0 && n.rand.Float64() < n.plan.LeftOut {
			to = n.leaveOut()
		}
		body := fmt.Sprintf(`"chainId":%s,"key":"%s","pool":"%s","to":"%s","data":"0x%x","gas":{"limit":60000}`, chainID, r.Key, poolName, to, data)
		switch n.rand.IntN(4) {
		case 0:
			key := chain.NonceKey{28: 6, 30: byte(n.count >> 8), 31: byte(n.count)} //nolint:gosec // its last bytes
			body += fmt.Sprintf(`,"nonceKey":{"mode":"fixed","key":"%s"}`, key)
		case 1:
			body += fmt.Sprintf(`,"orderingKey":"row-%d"`, n.rand.IntN(rowsMost))
		}
		if h := n.world.hooks; h != nil && n.rand.IntN(2) == 0 {
			body += fmt.Sprintf(`,"webhooks":[%q]`, h.hostile[n.rand.IntN(len(h.hostile))].url)
		}
		n.world.tenants.ownsIntent(hostile, r.ID(), data)
		t := &wanting{request: r, id: r.ID()}
		if n.asked = append(n.asked, t); len(n.asked) > wantsMost {
			n.asked = n.asked[1:]
		}
		n.ask("asks for intents", &wish{path: "/v1/intents", body: []byte("{" + body + "}"), door: intentsDoor})
	}
}

// leftOut is an account whose calls blocks leave out from time to time.
var leftOut = chain.Address{0: 0x77, 19: 4} //nolint:gochecknoglobals // constant

// leaveOut makes blocks leave out calls to an account, or include them again, and returns it.
func (n *neighbor) leaveOut() chain.Address {
	n.world.chain.SetLeftOut(leftOut, n.rand.IntN(4) > 0)
	n.world.faults["hostile: an intent that blocks may leave out"]++
	return leftOut
}

// meddleIntent reads and cancels the victim's intents, and uses its webhooks.
func (n *neighbor) meddleIntent() {
	l := n.world.wishes
	if len(l.recent) == 0 {
		return
	}
	t := l.recent[n.rand.IntN(len(l.recent))]
	path := "/v1/intents/" + t.id.String()
	rest := func(what, method, path, body string) {
		n.ask(what, &wish{method: method, path: path, body: []byte(body), door: intentsDoor, foreign: t.id[:]})
	}
	switch n.rand.IntN(7) {
	case 0:
		rest("reads another's intent", http.MethodGet, path, "")
	case 1:
		rest("reads another's intent", http.MethodGet, path+"/events", "")
	case 2:
		rest("cancels another's intent", http.MethodPost, path+"/cancel", `{}`)
	case 3:
		rest("speeds another's intent up", http.MethodPost, path+"/speed-up", `{"feePerGas":"1000000000"}`)
	case 4:
		n.ask("lists intents", &wish{method: http.MethodGet, path: "/v1/intents?limit=100", door: intentsDoor})
	case 5:
		if h := n.world.hooks; h != nil {
			to := h.receivers[n.rand.IntN(len(h.receivers))]
			n.ask("disables another's webhook", &wish{path: "/v1/webhooks/" + to.id.String() + "/disable", body: []byte(`{}`), door: intentsDoor})
		}
	default:
		if len(n.asked) > 0 {
			own := n.asked[n.rand.IntN(len(n.asked))]
			n.ask("cancels an intent", &wish{path: "/v1/intents/" + own.id.String() + "/cancel", body: []byte(`{}`), door: intentsDoor})
		}
	}
}

// The number of the hostile client's receivers, and the number of the first.
const (
	hostileReceivers = 3
	hostileFirst     = 100
)

// serveHostile answers a replica for a receiver of the hostile client: never, without end, or
// with a redirect to an internal address. It also checks that it receives only the hostile
// client's data.
func (r *receiver) serveHostile(by *replica, req *http.Request, body []byte) (*http.Response, error) {
	t := r.hooks.world.tenants
	r.hooks.world.judge.tell(t.secrets.Shown(promises.Shown{Client: t.names[hostile], Body: body}))
	switch r.number - hostileFirst {
	case 0:
		return nil, nil
	case 1:
		answer := respond(req, http.StatusOK, "", nil)
		answer.Body = &flood{replica: by}
		return answer, nil
	}
	return respond(req, http.StatusTemporaryRedirect, "", http.Header{"Location": {"http://169.254.169.254/latest/meta-data/"}}), nil
}
