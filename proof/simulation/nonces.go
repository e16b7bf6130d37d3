package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

// laneJudge checks the relay half's history against its promises.
type laneJudge struct {
	stopped
	judge      *judge
	nonces     *lanes.Judge
	intents    *intents.Judge
	safeguards *safeguards.Judge

	lane   eventlog.Codec[lane.Event]
	intent eventlog.Codec[intent.Event]
	states map[eventlog.Stream]lane.State // to know when no nonce is open any more
	open   map[eventlog.Stream]intent.State
	calls  map[chain.Hash]string // data of the calls of signers' transactions at nodes
}

// stopped is the signers and switches stopped by operators, or automatically.
type stopped struct {
	signer   eventlog.Codec[signer.Event]
	switches eventlog.Codec[safeguard.Event]
	budget   eventlog.Codec[budget.Event]

	signers map[eventlog.Stream]signer.State
	state   safeguard.State
	limited bool
}

// see records an event, and counts the events that must happen in some world.
func (s *stopped) see(r eventlog.Recorded, some map[string]int) {
	switch name := string(r.Stream); {
	case strings.HasPrefix(name, signer.StreamPrefix):
		some[r.Name]++
		if e, err := s.signer.Decode(r.Name, r.Data); err == nil { // otherwise the judges report it
			s.signers[r.Stream] = s.signers[r.Stream].Evolve(e)
		}
	case r.Stream == safeguard.Stream:
		some[r.Name]++
		if e, err := s.switches.Decode(r.Name, r.Data); err == nil {
			s.state = s.state.Evolve(e)
		}
	case strings.HasPrefix(name, budget.StreamPrefix):
		some[r.Name]++
		if e, err := s.budget.Decode(r.Name, r.Data); err == nil {
			if set, is := e.(budget.LimitSet); is {
				s.limited = set.Limit.Fee != nil
			}
		}
	}
}

// nonceHole is the maximum time for which a nonce may hold back others: longer than any fault
// except the operators' own stops.
const nonceHole = 20 * time.Minute

func newLaneJudge(w *world) *laneJudge {
	s := lanes.Settings{Attempts: 20, Hole: nonceHole}
	if w.plan.Relay.Acts > 0 {
		s.Hole = 0 // a paused signer holds back others
	}
	return &laneJudge{
		judge: w.judge, nonces: lanes.New(s), intents: intents.New(),
		safeguards: safeguards.New(safeguards.Settings{Grace: signingGrace(w.plan), Gas: fee.GasMin}),
		stopped:    stopped{signer: signer.Codec(), switches: safeguard.Codec(), budget: budget.Codec(), signers: map[eventlog.Stream]signer.State{}},
		lane:       lane.Codec(), intent: intent.Codec(),
		states: map[eventlog.Stream]lane.State{}, open: map[eventlog.Stream]intent.State{}, calls: map[chain.Hash]string{},
	}
}

// signingGrace is the maximum time from the guard's approval of a signature to its record, given
// this world's delays.
func signingGrace(p Plan) time.Duration {
	const between = 5 // requests to the store, or to the custodian
	g := 10 * time.Second
	if p.Crowd.Pause > 0 {
		g += pauseMost(p)
	}
	if p.Cluster.Nodes > 0 {
		g += between * clusterLate
	}
	if p.Store.Slow > 0 || p.Relay.Sign.Slow > 0 {
		g += between * 2 * slowMost
	}
	if p.Store.Hang > 0 {
		g += 2 * 5 * slowMost
	}
	if p.Store.Down > 0 || p.Store.Lose > 0 || p.Store.Cut > 0 || p.Store.Refuse > 0 {
		g += 20 * time.Second // for which it retries
	}
	if p.Crowd.Skew > 0 || p.Crowd.Jump > 0 || p.Store.Jump > 0 {
		g += 2*p.Crowd.Skew + 2*time.Second
	}
	return g
}

// see judges an appended event.
func (j *laneJudge) see(r eventlog.Recorded) {
	j.judge.tell(slices.Concat(j.nonces.Event(r), j.intents.Event(r), j.safeguards.Event(r)))
	some := j.judge.world.some
	j.stopped.see(r, some)
	switch name := string(r.Stream); {
	case strings.HasPrefix(name, lane.StreamPrefix):
		e, err := j.lane.Decode(r.Name, r.Data)
		if err != nil {
			return // the judges report it
		}
		j.notable(r, e, some)
		j.states[r.Stream] = j.states[r.Stream].Evolve(e)
	case strings.HasPrefix(name, intent.StreamPrefix):
		e, err := j.intent.Decode(r.Name, r.Data)
		if err != nil {
			return
		}
		some["intent: "+r.Name]++
		if id, err := intent.ParseStream(r.Stream); err == nil {
			j.judge.world.life.seeIntent(id, e)
		}
		if told, is := e.(intent.Announced); is && told.NewFork {
			some[forkTold]++
		}
		j.open[r.Stream] = j.open[r.Stream].Evolve(e)
	}
}

// notable counts the events that must happen in some world.
func (j *laneJudge) notable(r eventlog.Recorded, e lane.Event, some map[string]int) {
	some["lane: "+r.Name]++
	switch e := e.(type) {
	case lane.Attempted:
		j.judge.world.life.attempted(e.Hash, e.Intent)
		j.dear(r, e)
		if e.Number > 1 {
			some[bumped]++
		}
		if e.Intent.IsZero() {
			some[noOp]++
		}
	case lane.Advanced:
		if id, err := lane.ParseStream(r.Stream); err == nil {
			j.judge.world.jumped(id)
		}
	case lane.Reserved:
		if len(e.Reissued) > 0 {
			some[reissued]++
		}
	case lane.Released:
		some[givenBack+e.Reason]++
	}
}

// dear judges that no offer exceeds the operator's ceiling, or the intent's. A no-op belongs to
// no intent, so only the operator's applies.
func (j *laneJudge) dear(r eventlog.Recorded, e lane.Attempted) {
	ceiling := j.judge.world.plan.Relay.ceiling()
	offer, own := e.Fee.MaxFee.Int(), j.open[intent.Stream(e.Intent)].Requested.Request.Gas.MaxFee
	switch {
	case offer.CmpUint64(ceiling) > 0:
		j.judge.fail("fees", "%s: %s offers %s for a unit of gas, and the ceiling is %d", r.Stream, e.Hash, e.Fee.MaxFee, ceiling)
	case !e.Intent.IsZero() && !own.IsZero() && offer.Gt(own.Int()):
		j.judge.fail("fees", "%s: %s offers %s for a unit of gas, and intent %s may pay %s", r.Stream, e.Hash, e.Fee.MaxFee, e.Intent, own)
	}
}

// of lists the nonce keys of a signer's lanes.
func (j *laneJudge) of(signer chain.Address) (all []chain.NonceKey) {
	for _, s := range slices.Sorted(maps.Keys(j.states)) {
		if id, err := lane.ParseStream(s); err == nil && id.Sender == signer {
			all = append(all, id.Key)
		}
	}
	return all
}

// received records the calls of signers' transactions.
func (j *laneJudge) received(d chaintest.Delivery) {
	s, err := j.judge.decode(d.Raw)
	if err != nil || len(s.Calls) == 0 || len(s.Calls[0].Input) == 0 {
		return
	}
	if slices.ContainsFunc(j.judge.world.signers, func(a account) bool { return a.address == s.Sender }) {
		j.calls[s.Hash] = string(s.Calls[0].Input)
	}
}

// unquiet lists the remaining work: unfinished intents, and nonces that are waited for. A free
// nonce without an attempt waits for an intent, and nothing waits for the nonce.
func (j *laneJudge) unquiet() (still []string) {
	for _, s := range slices.Sorted(maps.Keys(j.open)) {
		if it := j.open[s]; it.End == nil {
			still = append(still, fmt.Sprintf("%s is %s at %v", s, it.Status(), it.Place))
		}
	}
	for _, s := range slices.Sorted(maps.Keys(j.states)) {
		for slot := range j.states[s].Slots() {
			if !slot.IsFree() && slot.Landed == nil || slot.IsFree() && len(slot.Attempts) > 0 {
				still = append(still, fmt.Sprintf("%s: nonce %d of %s, %d attempts, filled %t", s, slot.Nonce, slot.Intent, len(slot.Attempts), slot.Filled))
			}
		}
	}
	return still
}

// finish judges the promises that show only at the end.
func (j *laneJudge) finish() {
	j.judge.tell(j.nonces.Finish(time.Now()))
	j.judge.tell(j.intents.Finish(func(chain.ID) promises.Chain { return truth{j.judge} }, true))
	times := map[string][]chain.Hash{}
	for hash := range j.judge.world.chain.Executed() {
		if _, in := j.judge.world.chain.Receipt(hash); in && j.calls[hash] != "" {
			times[j.calls[hash]] = append(times[j.calls[hash]], hash)
		}
	}
	for _, call := range slices.Sorted(maps.Keys(times)) {
		if hashes := times[call]; len(hashes) > 1 {
			slices.SortFunc(hashes, func(a, b chain.Hash) int { return cmp.Compare(a.String(), b.String()) })
			j.judge.fail("P10", "the call %x was executed %d times: %v", call, len(hashes), hashes)
		}
	}
}
