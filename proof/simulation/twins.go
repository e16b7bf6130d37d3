package simulation

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// neighborFloods is the ratio of the hostile client's requests to the victim's in a twin world.
const neighborFloods = 10

// ExpandTwins derives a seed's twin world, which is run without hostile clients and with them,
// at ten times the requests. It has no other faults, so that the answers to the victim do not
// depend on exact times.
func ExpandTwins(seed uint64, hours float64, relay bool) Plan {
	d := dice{rand.New(rand.NewPCG(seed, 0x7815))}
	p := Plan{
		Seed: seed, Hours: hours, Replicas: 1 + d.weighted(1, 4), Nodes: 3, Block: d.of(time.Second, 2*time.Second, 3*time.Second),
		Finality: uint64(2 + d.IntN(4)), Redis: d.chance(0.5), Requests: 1, //nolint:gosec // small
		OwnerTTL: 15 * time.Second, WorkLease: 10 * time.Second, Poll: 2 * time.Second, Retention: 24 * time.Hour,
		StoreDelay: d.of(500*time.Microsecond, 2*time.Millisecond), NodeDelay: d.of(20*time.Millisecond, 80*time.Millisecond),
		Lag: 100 * time.Millisecond, Keys: true, Twins: true,
	}
	p.Hostile = HostilePlan{Rate: neighborFloods * p.Requests / 2, Crowd: time.Minute, Crowded: 300}
	p.Client.Cancel = 0.05
	if d.chance(0.5) {
		p.Liar = lies[d.IntN(len(lies))] // a lying endpoint, known to the victim alone
	}
	if relay {
		p.Relay = RelayPlan{
			Signers: 2 + d.IntN(2), Intents: 0.3, Budget: 16, Confirmations: 1, Stall: 30 * time.Second, Claim: 10 * time.Second,
			Linger: time.Minute, Wish: WishFaults{Row: 0.2, Keyed: 0.1, Named: 0.3},
			Hooks: HookPlan{Receivers: 1, Hooked: 0.5, Timeout: 5 * time.Second, Poll: 3 * time.Second, Bears: 120 * time.Hour, Slots: 16, AtOnce: 4},
		}
		p.Requests, p.Hostile.Rate = 0.5, neighborFloods*0.4
	}
	return p
}

// twinSettings make the service small enough for a neighbor to fill it.
func (p Plan) twinSettings() map[string]any {
	if !p.Twins {
		return nil
	}
	return map[string]any{"SCHEDULER_MAX_CONCURRENCY": 8}
}

// Alone is the plan of a world without its hostile parties.
func (p Plan) Alone() Plan {
	p.Hostile, p.Liar = HostilePlan{}, ""
	return p
}

// Compare judges the runs of a world with and without hostile parties (P36). The report is the
// first run's, with the victim's record in each.
func Compare(beside, alone Report) Report {
	r := beside
	r.Life, r.Beside = alone.Life, beside.Life
	r.Violations = append(append([]string(nil), alone.Violations...), beside.Violations...)
	r.Simulated, r.Requests, r.Retries, r.Events = r.Simulated+alone.Simulated, r.Requests+alone.Requests, r.Retries+alone.Retries, r.Events+alone.Events
	r.Sent, r.Steps, r.Lives = r.Sent+alone.Sent, r.Steps+alone.Steps, r.Lives+alone.Lives
	r.Processor += alone.Processor
	r.Trace = r.Trace*0x100000001b3 ^ alone.Trace
	if len(r.Violations) > 0 {
		return r
	}
	for _, v := range promises.Undisturbed(alone.Life, beside.Life, r.Plan.fairShare()) {
		r.Violations = append(r.Violations, v.Promise.String()+": "+v.String())
	}
	return r
}

// fairShare is the delay that other clients may cause: one polling interval, and where they
// share signers one block for their transactions.
func (p Plan) fairShare() time.Duration {
	if p.Relay.Signers > 0 {
		return p.Poll + 2*p.Block
	}
	return p.Poll
}

// twinDoes performs an action of the victim in a twin world. None of them depends on the results
// of others, or on exact times.
func (w *world) twinDoes() {
	l := w.load
	switch n := l.rand.IntN(100); {
	case n < 4 && len(l.groups) > 0:
		i := l.rand.IntN(len(l.groups))
		t := l.groups[i]
		l.groups = append(l.groups[:i:i], l.groups[i+1:]...)
		if t.window.After > l.unix(30*time.Second) {
			w.cancelGroup(t)
		}
	case n < 8 && len(l.recent) > 0:
		t := l.recent[l.rand.IntN(len(l.recent))]
		w.ask(&wish{what: "read", method: http.MethodGet, path: "/v1/transactions/" + t.hash.String(), items: []*signed{t}})
	case n < 10:
		w.ask(&wish{what: "list", method: http.MethodGet, path: "/v1/transactions?chainId=42431&limit=20"})
	case n < 15:
		w.count(l.senders[len(l.senders)-1])
	case n < 18:
		w.otherUnderKey()
	default:
		w.deliver(l.twinBatch())
	}
}

// twinBatch signs the transactions of one request. All but the last sender have transactions in
// flight.
func (l *load) twinBatch() []*signed {
	s := l.senders[l.rand.IntN(len(l.senders)-1)]
	open := func() chain.Window { return chain.Window{Before: l.unix(l.between(6*time.Minute, 12*time.Minute))} }
	switch n := l.rand.IntN(100); {
	case n < 40:
		return []*signed{l.sign(s, l.freshKey(), 0, open(), 1)}
	case n < 70:
		at := s.lanes[l.rand.IntN(lanesMost)]
		t := l.sign(s, at.key, at.next, chain.Window{}, 1)
		at.next++
		return []*signed{t}
	case n < 88:
		after := l.unix(l.between(5*time.Second, 2*time.Minute))
		return []*signed{l.sign(s, l.freshKey(), 0, chain.Window{After: after, Before: after + 300}, 1)}
	case n < 92:
		return []*signed{l.sign(s, chain.ExpiringKey, 0, chain.Window{Before: l.unix(80 * time.Second)}, 1)}
	}
	key, w := l.groupKey(), chain.Window{After: l.unix(2 * time.Minute), Before: l.unix(12 * time.Minute)}
	members := []*signed{l.sign(s, key, 0, w, 1), l.sign(s, key, 1, w, 1)}
	members[0].group = members
	l.groups = append(l.groups, members[0])
	return members
}

// count asks for an account's next nonce, as a wallet does, when the account has none in flight:
// the answer is the chain's.
func (w *world) count(s *sender) {
	w.ask(&wish{what: "count", method: http.MethodPost, path: "/rpc", body: fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["%s","pending"]}`, s.address),
		told: func(*recorder) bool { return true }})
}

// otherUnderKey submits a transaction with an Idempotency-Key, and another with the same key
// half a minute later, which is refused while the service remembers the first.
func (w *world) otherUnderKey() {
	l := w.load
	l.keys++
	key := fmt.Sprintf("own-%d", l.keys)
	first, second := l.sign(l.senders[0], l.freshKey(), 0, chain.Window{}, 1), l.sign(l.senders[0], l.freshKey(), 0, chain.Window{}, 1)
	for i, t := range []*signed{first, second} {
		w.tenants.owns(victim, t)
		w.agenda.after(time.Duration(i)*30*time.Second, "own key", func() {
			w.ask(&wish{
				what: "submit", method: http.MethodPost, path: "/v1/transactions", key: key, items: []*signed{t},
				body: []byte(`{"chainId":` + chainID.String() + `,"transactions":["0x` + hex.EncodeToString(t.raw) + `"]}`),
			})
		})
	}
}
