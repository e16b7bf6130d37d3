package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// longStop is the chance that an operator lifts a stop only after all replicas must have seen
// it.
const longStop = 0.3

// operate halts, pauses or drains as an operator, and lifts that after a while.
func (w *world) operate() {
	a := w.agenda
	who := w.signers[a.rand.IntN(len(w.signers))].address
	wait := a.between(10*time.Second, 3*time.Minute)
	if a.chance(longStop) { // long enough to detect a replica that goes on all the same
		wait = signingGrace(w.plan) + a.between(10*time.Second, time.Minute)
	}
	switch a.rand.IntN(4) {
	case 0:
		w.faults["operator: halts"]++
		w.admin(http.MethodPost, "/admin/safeguards/halt", haltOf)
		a.after(wait, "resume", func() { w.admin(http.MethodPost, "/admin/safeguards/resume", haltOf) })
	case 1:
		w.faults["operator: pauses a signer"]++
		w.order(who, "pause")
		a.after(wait, "resume", func() { w.order(who, "resume") })
	case 2:
		w.faults["operator: drains a signer"]++
		w.order(who, "drain")
		a.after(wait, "resume", func() { w.order(who, "resume") })
	case 3:
		w.faults["operator: limits a budget"]++
		w.allow(`"fee":"10000000000000000",`)
		a.after(wait, "limit", func() { w.allow(w.plan.Relay.allowance()) })
	}
}

const haltOf = `{"scope":{"kind":"deployment"},"reason":"simulated"}`

// allow sets each signer's daily limit for gas.
func (w *world) allow(fee string) {
	w.admin(http.MethodPut, "/admin/budgets/"+chainID.String(), `{"account":{"kind":"each-signer"},`+fee+`"reason":"simulated"}`)
}

// allowance is the limit while it is not lowered; empty without a limit.
func (p RelayPlan) allowance() string {
	if p.Allowance == 0 {
		return ""
	}
	return fmt.Sprintf(`"fee":"%d000000000",`, p.Allowance)
}

func (w *world) order(who chain.Address, what string) {
	w.admin(http.MethodPost, fmt.Sprintf("/admin/signers/%s/%s/%s", chainID, who, what), `{"reason":"simulated"}`)
}

// fillHoles requests, as an operator, no-ops for the intents that hold back others.
func (w *world) fillHoles() {
	for _, stream := range slices.Sorted(maps.Keys(w.lanes.states)) {
		id, err := lane.ParseStream(stream)
		holes := w.lanes.states[stream].Holes()
		if err != nil || len(holes) == 0 {
			continue
		}
		hole := holes[w.agenda.rand.IntN(len(holes))]
		w.faults["operator: wants a hole filled"]++
		w.ask(&wish{
			what: "fill", method: http.MethodPost, path: fmt.Sprintf("/admin/lanes/%s/%s/%s/fill", chainID, id.Sender, id.Key),
			body: fmt.Appendf(nil, `{"nonces":[%d],"reason":"simulated"}`, hole.Nonce), door: adminDoor,
			// A nonce that is no longer a hole, or may not be filled, is refused.
			told: func(out *recorder) bool { return out.status < http.StatusInternalServerError },
		})
	}
}

// admin sends an operator's request, and retries until it succeeds.
func (w *world) admin(method, path, body string) {
	w.ask(&wish{what: "operator", method: method, path: path, body: []byte(body), door: adminDoor, told: func(out *recorder) bool {
		if out.status >= http.StatusBadRequest && out.status < http.StatusInternalServerError {
			w.judge.fail("answers", "%s %s was answered %d: %s", method, path, out.status, out.body.String())
		}
		return out.status < http.StatusInternalServerError
	}})
}

// tend looks after signers and switches as an operator with alerts does, during the whole world.
// It re-enables signers disabled by their own failures. After the faults it lifts all stops.
func (w *world) tend() {
	const every = time.Minute
	w.agenda.after(every, "operator looks", func() {
		for _, s := range w.signers {
			state := w.lanes.signers[signer.Stream(chainID, s.address)]
			if state.Disabled || w.healed && state.Stance.Status != signer.StatusServing {
				w.order(s.address, "resume")
			}
		}
		if w.healed && len(w.lanes.state.Halts) > 0 {
			w.admin(http.MethodPost, "/admin/safeguards/resume", haltOf)
		}
		if w.healed && w.lanes.limited {
			w.allow("")
		}
		w.tend()
	})
}
