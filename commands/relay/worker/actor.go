package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
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

	ready   []*job                       // claimed, to be given a nonce in this turn
	claim   bool                         // there may be more intents to claim
	called  bool                         // claim was set by a call to this lane
	idle    idle                         // polls without anything to claim
	calls   calls                        // calls that an OnlyAsked lane answers later
	roomy   int                          // room for more intents, when last checked
	loaded  int                          // nonces in flight at that check
	shared  time.Time                    // last claim from the lane's pools
	since   map[chain.IntentID]time.Time // intents left to other lanes, and since when
	claims  int                          // number of times the claimed set was discarded, see holder
	leaves  bool                         // a claimed intent's ordering group has to wait, see putOff
	delayed map[chain.IntentID]delay     // intents that could not continue lately
	unclear unclear                      // why some of these wait
	served  string                       // client of the last claimed intent
	wider   int                          // size of the next claim; 0: the room
	sweep   sweep                        // position in the queue behind blocked intents
	reading map[string]*reading          // bytes read for blocked intents, by client
	looked  time.Time                    // last time the chain was asked for the nonce it wants
	polled  time.Time
	blocks  []chain.Block // as of polled
	said    chain.Block   // final block according to nodes, when last asked for
	final   uint64        // number of the highest block in blocks known to be final
	newest  chain.Block   // newest block of the chain, as last reported
	heard   time.Time     // time of that report
	silent  error         // error of the nodes in this turn
	met     bool          // blocks have held a block that nodes reported since the lane was opened
	front   front
	pin     pin
	behalf
	passing passing
	// penalties are by client whose intents gave way, see [actor.penalize].
	penalties map[string]penalty
	purses    *Purses
	fresh     map[chain.Hash][]byte // signed here, and not handed to delivery yet
	told      string                // the error last logged
	toldAt    time.Time             // time of that log entry
	failing   time.Time             // last failure of the signer
	witness   lane.Witness          // last answer about the nonce that the chain wants
	drift     int64                 // as of witness, see [Turn]
	stalls    bool                  // in this turn
	measures  *measures
	lacking   bool // to report to the guard: nodes found the signer short of funds
	weighed   int  // nonces in flight when a client had too much gas there; 0: no client had
	short     bool // an intent got no nonce because the signer has too little
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
	was, now   chain.Block
	lacks      bool       // the last answer of nodes was a refusal for lack of funds
	refusal    tx.Outcome // the last recorded refusal, if nodes have refused it since a node took it
	httpStatus int        // the last recorded [contentStatus], if nodes have refused it since a node took it
	why        string     // a node's words, if nodes have refused it for good
}

// front is the first nonce that waits for the chain.
type front struct {
	nonce uint64
	since time.Time
}

func newActor(l *Lane, held handler.Result[lane.State], token lane.Token, box *inbox) *actor {
	return &actor{
		Lane: l, token: token, held: held, box: box, claim: true, purses: cmp.Or(l.Purses, &Purses{}),
		jobs: map[uint64]*job{}, measures: newMeasures(), penalties: map[string]penalty{}, behalf: behalf{rests: map[string]rest{}}, fresh: map[chain.Hash][]byte{}, delayed: map[chain.IntentID]delay{}, reading: map[string]*reading{},
	}
}

// overError ends an actor: the lane's stream differs from the actor's state, or the log
// cannot be reached. The actor then releases its lease, so that another process can try.
type overError struct{ error }

func (e overError) Unwrap() error { return e.error }

func (a *actor) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer a.measures.running.Wait()
	defer stop()
	tick := time.NewTicker(a.Settings.Poll)
	defer tick.Stop()
	for {
		began := a.Now()
		err := a.turn(ctx)
		a.report(began, err)
		if over := (overError{}); errors.As(err, &over) {
			return over.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.tell(err, a.Now())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.box.wake:
			_ = pause.For(ctx, gather) // the turn checks ctx
		case <-tick.C:
			a.claim = a.claim || a.isDue()
		case <-a.calls.due(a.Now()):
		}
	}
}

// gather is the pause after a wake-up, so that one append covers several events.
const gather = 5 * time.Millisecond

// toldMax is the longest logged error, in bytes: many nonces may have the same error.
const toldMax = 1024

// tellEvery is how often a lasting error is logged again, so that a reader of later logs
// finds why intents wait.
const tellEvery = time.Minute

// tell logs an error when it begins, changes and ends, and from time to time while it
// lasts.
func (a *actor) tell(trouble error, now time.Time) {
	text := ""
	if trouble != nil {
		text = trouble.Error()
		text = text[:min(len(text), toldMax)]
	}
	switch {
	case text == a.told && (trouble == nil || now.Sub(a.toldAt) < tellEvery):
		return
	case trouble != nil:
		a.Log.Warn("lane fails, retrying", "lane", lane.Stream(a.ID), "err", text)
	default:
		a.Log.Info("lane works again", "lane", lane.Stream(a.ID))
	}
	a.told, a.toldAt = text, now
}

// turn takes the next steps with all nonces. The next turn retries a failed step; the later
// steps run all the same.
func (a *actor) turn(ctx context.Context) error {
	var trouble error
	a.silent = nil
	for _, step := range []func(context.Context) error{
		a.poll, a.look, a.refresh, a.warn, a.settle, a.expire, a.giveWay, a.account, a.take, a.remind, a.place, a.fill, a.square, a.sign, a.record, a.hand,
	} {
		err := step(ctx)
		if over := (overError{}); errors.As(err, &over) || ctx.Err() != nil {
			return err
		}
		trouble = errors.Join(trouble, err)
	}
	return trouble
}

// command handles a command on the lane. A refusal leaves the lane unchanged. If this
// process no longer holds the lane, or on any other error, the actor ends.
func (a *actor) command(ctx context.Context, c lane.Command) error {
	next, err := a.Lanes.DoFrom(ctx, lane.Stream(a.ID), a.held, c, byLane())
	if err != nil && (errors.Is(err, lane.ErrFenced) || !commands.IsRefusal(err)) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	if err != nil {
		return fmt.Errorf("%T: %w", c, err)
	}
	a.held = next
	return nil
}

// tellIntent handles a command on the intent of a job.
func (a *actor) tellIntent(ctx context.Context, j *job, c intent.Command) error {
	r, err := a.Intents.DoFrom(ctx, intent.Stream(j.id), j.intent, c, byLane())
	if err != nil && !commands.IsRefusal(err) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	j.intent = r
	return err
}

// each runs a step on many nonces or intents, AtOnce of them concurrently.
func each[T any](a *actor, all []T, do func(T) error) error {
	return commands.Each(len(all), a.Settings.AtOnce, func(i int) error { return do(all[i]) })
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

// readIntent reads the intent of a nonce. If the intent knows an attempt at this place that
// the lane's state lacks, another holder has worked on the lane since. The actor then ends:
// otherwise it could take that holder's transaction for a rival's.
func (a *actor) readIntent(ctx context.Context, s standing) error {
	read, err := a.Intents.Load(ctx, intent.Stream(s.id))
	if err != nil {
		return err // the known state stays: an unknown intent would count as an intent without a nonce
	}
	s.job.intent = read
	it := read.State
	if !a.placed(s) {
		return nil
	}
	for _, made := range it.Attempts {
		ours := slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return m.Hash == made.Hash })
		if made.Assignment == it.Assignment && !ours {
			return overError{lane.ErrFenced.Because("%s, at nonce %d, belongs to another holder", made.Hash, s.Nonce)}
		}
	}
	return nil
}

func (a *actor) read(ctx context.Context, s standing) (err error) {
	if s.unread && !s.id.IsZero() {
		if err := a.readIntent(ctx, s); err != nil {
			return err
		}
	}
	for _, made := range s.Attempts {
		if s.txs[made.Hash], err = a.readTx(ctx, made.Hash); err != nil {
			return err
		}
	}
	s.stale, s.unread, s.news = false, false, true
	return nil
}

// readTx folds a transaction's stream, and keeps its latest reorg and refusal.
func (a *actor) readTx(ctx context.Context, hash chain.Hash) (d delivered, err error) {
	stream := tx.Stream(a.Chain, hash)
	for r, err := range a.Transactions.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return d, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := a.Transactions.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return d, fmt.Errorf("%s version %d: %w", stream, r.Version, err)
		}
		switch e := e.(type) {
		case tx.Reorged:
			d.was, d.now = e.Was, e.Now
		case tx.Rejected:
			d.lacks, d.refusal = e.Cause == tx.Funds, tx.Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason}
			d.httpStatus = contentStatus(e.Answers)
			if d.why = ""; e.Permanent {
				d.why = e.Reason
			}
		case tx.Broadcast:
			d.lacks, d.refusal, d.httpStatus = false, tx.Outcome{}, 0
		}
		d.replies.see(e)
		d.State = d.State.Evolve(e)
	}
	return d, nil
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
