package simulation

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

// wishes are the clients of the relay half, and their intents.
type wishes struct {
	world  *world
	rand   *rand.Rand
	count  uint64
	recent []*wanting
	due    time.Duration // time of the next request
}

// wanting is a client's intent.
type wanting struct {
	request  intent.Request
	id       chain.IntentID
	body     string
	told     bool   // the client was told that it was accepted
	sequence uint64 // the last sequence that a client has seen
}

func newWishes(w *world) *wishes {
	return &wishes{world: w, rand: rand.New(rand.NewPCG(w.plan.Seed, 0x3157))}
}

var (
	payee  = chain.Address{0: 0x77, 19: 2} //nolint:gochecknoglobals // constant
	failer = chain.Address{0: 0x77, 19: 3} //nolint:gochecknoglobals // likewise: what calls it fails
)

const (
	rowsMost  = 3 // number of ordering keys
	keysMost  = 3 // number of nonce keys
	wantsMost = 64
	eraLasts  = 90 * time.Second
)

// begin schedules the clients' requests to the relay half.
func (l *wishes) begin() {
	l.world.chain.SetFailing(failer, []byte{})
	l.again()
}

func (l *wishes) again() {
	usual := time.Duration(float64(time.Second) / max(l.world.plan.Relay.Intents, 0.01))
	// Absolute times, so that other parties' actions shift no request.
	l.due += time.Duration(float64(usual) * (0.5 + l.rand.Float64()))
	l.world.agenda.after(l.due-l.world.agenda.now(), "wish", func() {
		if l.world.healed {
			return
		}
		l.next()
		l.again()
	})
}

func (l *wishes) chance(p float64) bool { return p > 0 && l.rand.Float64() < p }

// next performs a random client action.
func (l *wishes) next() {
	p := l.world.plan.Relay.Wish
	some := len(l.recent) > 0
	switch n := l.rand.Float64(); {
	case some && n < p.Withdraw/2:
		l.cancel(l.any())
	case some && n < p.Withdraw:
		l.speedUp(l.any())
	case some && n < p.Withdraw+p.Twice/2:
		l.world.faults["client: an intent again"]++
		l.ask(l.any())
	case some && n < p.Withdraw+p.Twice*0.6:
		l.another(l.any())
	case some && n > 0.9:
		l.read(l.any())
	case some && n > 0.87:
		l.look("/v1/intents?limit=10")
	case some && n > 0.85:
		l.look("/v1/intents/" + l.any().id.String() + "/events")
	default:
		for range 1 + l.rand.IntN(2)*l.rand.IntN(4) {
			t := l.wish()
			l.ask(t)
			if l.chance(p.Withdraw) {
				l.world.agenda.after(time.Duration(l.rand.Int64N(int64(3*time.Second))), "regret", func() { l.cancel(t) })
			}
		}
	}
}

func (l *wishes) any() *wanting { return l.recent[l.rand.IntN(len(l.recent))] }

// wish draws an intent. Its call's data is unique, so that its executions can be counted.
func (l *wishes) wish() *wanting {
	p := l.world.plan.Relay.Wish
	l.count++
	to := payee
	if l.chance(p.Fails) {
		to = failer
	}
	data := binary.BigEndian.AppendUint64(nil, l.count)
	own := chain.Keccak(data, []byte("wish"))
	data = append(data, own[:24]...)
	r := intent.Request{
		Client: l.world.tenants.names[victim], Key: fmt.Sprintf("wish-%d", l.count), Chain: chainID, From: intent.From{Pool: poolName},
		Calls: []intent.Call{{To: &to, Data: data}},
	}
	body := fmt.Sprintf(`"chainId":%s,"key":"%s","to":"%s","data":"0x%x"`, chainID, r.Key, to, data)
	if l.chance(p.Named) {
		who := l.world.signers[l.rand.IntN(len(l.world.signers))].address
		r.From = intent.From{Signer: &who}
		body += fmt.Sprintf(`,"signer":"%s"`, who)
	} else {
		body += fmt.Sprintf(`,"pool":"%s"`, poolName)
	}
	switch {
	case l.chance(p.Row):
		r.Order = fmt.Sprintf("row-%d", l.rand.IntN(rowsMost))
		body += fmt.Sprintf(`,"orderingKey":"%s"`, r.Order)
		if l.chance(p.Keyed) {
			r.NonceKey.Mode = intent.NonceOrdered
			body += `,"nonceKey":{"mode":"ordered"}`
		}
	case l.chance(p.Keyed):
		key := chain.NonceKey{29: l.era(), 30: 1, 31: byte(l.rand.IntN(keysMost))} //nolint:gosec // small
		r.NonceKey = intent.NoncePolicy{Mode: intent.NonceFixed, Key: &key}
		body += fmt.Sprintf(`,"nonceKey":{"mode":"fixed","key":"%s"}`, key)
	}
	if l.rand.IntN(2) == 0 {
		r.Gas.Limit = 60_000
	}
	if l.chance(p.Poor) {
		most := cmp.Or(l.world.market, marketMost)
		r.Gas.MaxFee = intent.NewAmount((most/2 + l.rand.Uint64N(2*most)) * gwei)
	}
	body += gasOf(r.Gas)
	if l.chance(p.Deadline) {
		r.Deadline = l.world.load.unix(10*time.Second + time.Duration(l.rand.Int64N(int64(5*time.Minute))))
		body += fmt.Sprintf(`,"deadline":%d`, r.Deadline)
	}
	if all := l.world.hooks.wanted(l.chance); len(all) > 0 {
		r.Webhooks = all
		urls := make([]string, len(all))
		for i, w := range all {
			urls[i] = strconv.Quote(w.URL)
		}
		body += fmt.Sprintf(`,"webhooks":[%s]`, strings.Join(urls, ","))
	}
	l.world.tenants.ownsIntent(victim, r.ID(), data)
	wanted := &wanting{request: l.world.hooks.sealed(r), id: r.ID(), body: "{" + body + "}"}
	if l.recent = append(l.recent, wanted); len(l.recent) > wantsMost {
		l.recent = l.recent[1:]
	}
	return wanted
}

// era numbers periods with different nonce keys: no intent asks for the keys of earlier periods,
// so leftover nonces in their lanes have no demand.
func (l *wishes) era() byte {
	return byte(l.world.agenda.now() / eraLasts) //nolint:gosec // a world lasts for hours
}

func gasOf(g intent.Gas) string {
	var parts []string
	if g.Limit > 0 {
		parts = append(parts, fmt.Sprintf(`"limit":%d`, g.Limit))
	}
	if !g.MaxFee.IsZero() {
		parts = append(parts, fmt.Sprintf(`"maxFeePerGas":"%s"`, g.MaxFee))
	}
	if len(parts) == 0 {
		return ""
	}
	return `,"gas":{` + strings.Join(parts, ",") + "}"
}

// ask submits an intent, sometimes with a wait until it is mined.
func (l *wishes) ask(t *wanting) {
	path := "/v1/intents"
	if l.rand.IntN(8) == 0 && !l.world.plan.Twins { // the duration decides the answer
		path += "?wait=mined&timeout=10s"
	}
	r := &wish{what: "intent", method: http.MethodPost, path: path, body: []byte(t.body), door: intentsDoor}
	r.told = func(out *recorder) bool { return l.taken(t, out) }
	l.world.ask(r)
}

// another submits a different intent under a used key.
func (l *wishes) another(t *wanting) {
	l.world.faults["client: another intent under a key"]++
	other := strings.Replace(t.body, `"data":"0x`, `"data":"0xff`, 1)
	r := &wish{what: "another intent", method: http.MethodPost, path: "/v1/intents", body: []byte(other), door: intentsDoor}
	r.told = func(out *recorder) bool {
		if t.told && out.status < http.StatusBadRequest {
			l.world.judge.fail("P3", "the key of %s was taken for another request: %s", t.id, out.body.String())
		}
		return out.status < http.StatusInternalServerError
	}
	if t.told { // otherwise the other one may be accepted first
		l.world.ask(r)
	}
}

// shown is the checked part of an intent's JSON.
type shown struct {
	ID       chain.IntentID `json:"id"`
	Sequence uint64         `json:"sequence"`
}

// taken judges that a client was shown its accepted intent.
func (l *wishes) taken(t *wanting, out *recorder) bool {
	if out.status >= http.StatusBadRequest {
		return out.status < http.StatusInternalServerError
	}
	var s shown
	if err := json.Unmarshal(out.body.Bytes(), &s); err != nil {
		l.world.judge.fail("answers", "an intent was answered by %s", out.body.String())
		return true
	}
	r := t.request
	l.world.judge.tell(l.world.lanes.intents.Call(intents.Call{
		Client: r.Client, From: r.From, Key: r.Key, Digest: r.Digest(), Result: promises.OK, ID: s.ID,
	}))
	t.told, t.sequence = true, max(t.sequence, s.Sequence)
	return true
}

// read reads an intent, and compares it with the last answer.
func (l *wishes) read(t *wanting) {
	told, sequence := t.told, t.sequence
	r := &wish{what: "read intent", method: http.MethodGet, path: "/v1/intents/" + t.id.String(), door: intentsDoor}
	r.told = func(out *recorder) bool {
		var s shown
		switch {
		case out.status == http.StatusNotFound && told:
			l.world.judge.fail("P24", "%s was accepted, but does not exist", t.id)
		case out.status != http.StatusOK:
			return out.status < http.StatusInternalServerError
		case json.Unmarshal(out.body.Bytes(), &s) != nil || s.ID != t.id:
			l.world.judge.fail("answers", "%s is shown as %s", t.id, out.body.String())
		case s.Sequence < sequence:
			l.world.judge.fail("P24", "%s is shown as of sequence %d, and was shown as of %d", t.id, s.Sequence, sequence)
		}
		t.sequence = max(t.sequence, s.Sequence)
		return true
	}
	l.world.ask(r)
}

// look reads something without an expected content.
func (l *wishes) look(path string) {
	r := &wish{what: "look", method: http.MethodGet, path: path, door: intentsDoor}
	r.told = func(out *recorder) bool { return out.status < http.StatusInternalServerError }
	l.world.ask(r)
}

func (l *wishes) cancel(t *wanting) {
	l.world.faults["client: cancels an intent"]++
	l.change(t, "cancel", "")
}

func (l *wishes) speedUp(t *wanting) {
	l.world.faults["client: speeds an intent up"]++
	l.change(t, "speed-up", fmt.Sprintf(`{"feePerGas":"%d"}`, uint64(50+l.rand.IntN(300))*gwei)) //nolint:gosec // small
}

func (l *wishes) change(t *wanting, what, body string) {
	r := &wish{what: what, method: http.MethodPost, path: "/v1/intents/" + t.id.String() + "/" + what, body: []byte(body), door: intentsDoor}
	told := t.told
	r.told = func(out *recorder) bool {
		if out.status == http.StatusNotFound && told {
			l.world.judge.fail("P24", "%s was accepted, but does not exist for its %s", t.id, what)
		}
		return out.status < http.StatusInternalServerError
	}
	l.world.ask(r)
}
