package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// actor works on a lane while this process holds it. All state that must survive is in
// streams. Each turn loads the state of every nonce and takes the next step with it,
// whichever holder took the previous step. So recovery needs no code of its own.
type actor struct {
	*Lane
	token lane.Token
	held  handler.Result[lane.State] // as of the lane's last append here
	jobs  map[uint64]*job            // by open nonce
	box   *inbox

	sight     // of the chain: poll, look
	queueView // take
	offers    // place, sign, hand
	behalf    // of clients, when the chain is asked
	measures  *measures
	passing   passing
	trouble   trouble // as it was logged
}

// job is the actor's knowledge of an open nonce, beyond the lane's state.
type job struct {
	id     chain.IntentID // the intent that holds the nonce; zero: none
	intent handler.Result[intent.State]
	txs    map[chain.Hash]delivered
	stale  bool // its transactions have to be read again, and if unread its intent too
	unread bool
	news   bool          // it was read since the guard was last called
	gas    uint64        // gas limit of the intent; 0: not known
	worst  budget.Charge // highest cost of its first attempt
	asked  time.Time     // since when nodes are asked for gas, if it has a nonce already
	// behind is the intent right before this one in its ordering group; zero: none.
	behind chain.IntentID
	// gone are attempts that were never handed over and whose bytes are lost.
	gone map[chain.Hash]bool
	// proven is the last announced block, once nodes have confirmed that it is final.
	proven chain.Hash
	// halted is the reason why nothing more is done with the nonce: the chain contradicts
	// itself.
	halted string
}

// delivered is a transaction's state plus its latest reorg: the block it was in and the
// block that replaced it.
type delivered struct {
	tx.State
	replies    replies
	denials    denials
	was, now   chain.Block
	lacks      bool       // the last answer of nodes was a refusal for lack of funds
	refusal    tx.Outcome // the last recorded refusal, if nodes have refused it since a node took it
	httpStatus int        // the last recorded [contentStatus], if nodes have refused it since a node took it
	why        string     // a node's words, if nodes have refused it for good
}

// front is the first nonce that waits for the chain.
type front struct {
	nonce   uint64
	since   time.Time
	block   uint64 // the newest block when it became the front or stalled last; 0: not known
	grew    bool   // there were new blocks before its last stall
	leftOut int    // stalls that count, see [leftOutMost]
}

func newActor(l *Lane, held handler.Result[lane.State], token lane.Token, box *inbox) *actor {
	return &actor{
		Lane: l, token: token, held: held, box: box,
		jobs: map[uint64]*job{}, measures: newMeasures(), behalf: behalf{rests: map[string]rest{}},
		queueView: queueView{claim: true, delayed: map[chain.IntentID]delay{}, reading: map[string]*reading{}},
		offers:    offers{purses: cmp.Or(l.Purses, &Purses{}), penalties: map[string]penalty{}, fresh: map[chain.Hash][]byte{}},
	}
}

// slots returns the open nonces in rising order, each with its job.
func (a *actor) slots() []standing {
	all := make([]standing, 0, a.held.State.Open())
	for slot := range a.held.State.Slots() {
		j := a.jobs[slot.Nonce]
		if j == nil || j.id != slot.Intent {
			j = a.begin(slot)
		}
		all = append(all, standing{slot, j})
	}
	return all
}

// standing is an open nonce: its slot in the lane and its job.
type standing struct {
	lane.Slot
	*job
}

// begin makes the job of a nonce. A claimed intent has a job already.
func (a *actor) begin(slot lane.Slot) *job {
	if old := a.jobs[slot.Nonce]; old != nil {
		a.box.unfollow(old.id)
	}
	j := &job{id: slot.Intent, stale: true, unread: true}
	if i := slices.IndexFunc(a.ready, func(j *job) bool { return j.id == slot.Intent }); i >= 0 {
		j = a.ready[i]
	}
	j.txs, j.gone = map[chain.Hash]delivered{}, map[chain.Hash]bool{}
	a.box.follow(slot.Nonce, slot.Intent, hashes(slot)...)
	a.jobs[slot.Nonce] = j
	return j
}

func hashes(slot lane.Slot) []chain.Hash {
	all := make([]chain.Hash, len(slot.Attempts))
	for i, made := range slot.Attempts {
		all[i] = made.Hash
	}
	return all
}

// forget drops the jobs of closed nonces.
func (a *actor) forget(gone []standing) {
	for _, s := range gone {
		if _, open := a.held.State.Slot(s.Nonce); !open {
			a.box.unfollow(s.id, hashes(s.Slot)...)
			delete(a.jobs, s.Nonce)
			for _, made := range s.Attempts {
				delete(a.fresh, made.Hash)
			}
		}
	}
}

// placed reports whether the intent's place is this nonce.
func (a *actor) placed(s standing) bool {
	place := s.job.intent.State.Place
	return !s.id.IsZero() && place != nil && *place == a.placeOf(s.Nonce)
}

func (a *actor) placeOf(nonce uint64) intent.Place {
	return intent.Place{Signer: a.ID.Sender, NonceKey: a.ID.Key, Nonce: nonce}
}

// mayCarryOut reports whether this lane can execute an intent at all, independent of the
// queue.
func (a *actor) mayCarryOut(r intent.Request) bool {
	key, chosen := r.LaneKey()
	return r.Chain == a.Chain && (r.Signer == nil || *r.Signer == a.ID.Sender) && (!chosen || key == a.ID.Key)
}

// known reports whether the intent knows an attempt of the lane. An attempt that its intent
// does not know was never handed over. An attempt at a nonce without an intent is known to
// the lane alone.
func (a *actor) known(s standing, hash chain.Hash) bool {
	if s.id.IsZero() || !a.placed(s) && a.noop(s, hash) {
		return true
	}
	return slices.ContainsFunc(s.job.intent.State.Attempts, func(made intent.Attempted) bool { return made.Hash == hash })
}
