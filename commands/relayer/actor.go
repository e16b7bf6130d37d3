package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// actor works on a lane while it holds it. All that it must not forget is in streams:
// each turn looks how every nonce stands and takes the next step with it, whoever has
// taken the one before. So there is no recovery beside the ordinary way.
type actor struct {
	*Lane
	token lane.Token
	held  commands.Result[lane.State] // as of our last append
	jobs  map[uint64]*job             // of the open nonces
	box   *inbox

	ready   []*job                       // claimed, to be given a nonce in this turn
	claim   bool                         // there may be more to claim
	called  bool                         // it was this lane that was told so
	idle    idle                         // polls without anything to claim
	roomy   int                          // how much room there was for more, when that was looked at last
	loaded  int                          // how much was in flight then
	shared  time.Time                    // when it was last looked at what the lane's pools are asked for
	since   map[chain.IntentID]time.Time // what was left to other lanes, and when first
	claims  int                          // how often it was lost track of what was claimed
	leaves  bool                         // rows among what is claimed are to wait, see putOff
	delayed map[chain.IntentID]delay     // what could not be carried on lately
	unclear unclear                      // why some of that waits
	served  string                       // the client whose intent was claimed last
	wider   int                          // for how many intents to claim next; 0 is as many as there is room for
	sweep   sweep                        // through what stands behind that
	looked  time.Time                    // when the chain was last asked for the nonce it wants
	polled  time.Time
	blocks  []chain.Block // as of polled
	said    chain.Block   // to be final, by nodes, when that mattered
	final   uint64        // the last block of these that is known to be
	newest  chain.Block   // of the chain, when that was heard last
	heard   time.Time     // when
	silent  error         // why nodes did not say in this turn
	met     bool          // blocks held one that nodes have told since the lane was opened
	front   front
	pin     pin
	// penalties are of clients whose intents gave way, see [actor.penalize].
	penalties map[string]penalty
	purses    *Purses
	fresh     map[chain.Hash][]byte // signed here, and not handed to delivery yet
	told      string                // the trouble that the log was told of
	toldAt    time.Time             // when
	failing   time.Time             // when the signer failed last
	witness   lane.Witness          // when the chain was last asked for the nonce it wants
	drift     int64                 // as of then, see [Turn]
	stalls    bool                  // in this turn
	measures  *measures
	lacking   bool // the guard is to be told that nodes found the signer short of money
	weighed   int  // how many were in flight when a client had too much gas there; 0 is none has
	short     bool // something got no nonce because the signer has too little
}

// job is what is known of an open nonce beside what the lane knows.
type job struct {
	id     chain.IntentID // that holds it; zero when none does
	intent commands.Result[intent.State]
	txs    map[chain.Hash]delivered
	stale  bool // to be read again: its transactions, and if unread the intent too
	unread bool
	news   bool          // it was read since the guard was last told
	gas    uint64        // that the intent needs; 0 is not known
	worst  budget.Charge // that its first attempt may cost
	asked  time.Time     // since when nodes are asked for that, when it has a nonce already
	// behind is what stands right before the intent in its row; zero when nothing does.
	behind chain.IntentID
	// gone are attempts that nobody was handed, and whose bytes nobody has any more.
	gone map[chain.Hash]bool
	// proven is the last block that was told, once nodes have said that it is final.
	proven chain.Hash
	// halted is why nothing more is done with the nonce: the chain contradicts itself.
	halted string
}

// delivered is how a transaction stands, and which block it lost last, and to which.
type delivered struct {
	tx.State
	was, now chain.Block
	lacks    bool       // nodes have refused it last for want of funds
	refusal  tx.Outcome // the last recorded one, if nodes have refused it since one took it
	why      string     // in a node's words, if they have refused it for good
}

// front is the first nonce that waits for the chain.
type front struct {
	nonce uint64
	since time.Time
}

func newActor(l *Lane, held commands.Result[lane.State], token lane.Token, box *inbox) *actor {
	return &actor{
		Lane: l, token: token, held: held, box: box, claim: true, purses: cmp.Or(l.Purses, &Purses{}),
		jobs: map[uint64]*job{}, measures: newMeasures(), penalties: map[string]penalty{}, fresh: map[chain.Hash][]byte{}, delayed: map[chain.IntentID]delay{},
	}
}

// overError ends an actor: what stands in the lane's stream is not what it knows, or the
// log cannot be reached. It gives the lease up then: another may reach it.
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
			_ = commands.Pause(ctx, gather) // the turn asks the context
		case <-tick.C:
			a.claim = a.claim || a.isDue()
		}
	}
}

// gather is how long news is waited for after the first, so that one append tells of many.
const gather = 5 * time.Millisecond

// toldMax bounds what is logged of trouble, in bytes: many nonces may have the same.
const toldMax = 1024

// tellEvery is how often the log is told of trouble that lasts: whoever begins to read it
// later has to find why intents wait.
const tellEvery = time.Minute

// tell logs trouble when it begins, changes and ends, and now and then while it lasts.
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
		a.Log.Warn("lane is in trouble", "lane", lane.Stream(a.ID), "err", text)
	default:
		a.Log.Info("lane is out of trouble", "lane", lane.Stream(a.ID))
	}
	a.told, a.toldAt = text, now
}

// turn takes the next steps with all nonces. What fails is tried again by the next turn;
// it does not keep what comes after it from being tried.
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

// command carries out a command on the lane. A refusal leaves the lane as it was; that
// of one who does not hold it any more, or any other trouble, is the end.
func (a *actor) command(ctx context.Context, c lane.Command) error {
	origin, err := a.origin()
	if err != nil {
		return err
	}
	next, err := a.Lanes.HandleFrom(ctx, lane.Stream(a.ID), a.held, c, origin)
	if err != nil && (errors.Is(err, lane.ErrFenced) || !commands.IsRefusal(err)) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	if err != nil {
		return fmt.Errorf("%T: %w", c, err)
	}
	a.held = next
	return nil
}

// tellIntent carries out a command on the intent of a job.
func (a *actor) tellIntent(ctx context.Context, j *job, c intent.Command) error {
	origin, err := a.origin()
	if err != nil {
		return err
	}
	r, err := a.Intents.HandleFrom(ctx, intent.Stream(j.id), j.intent, c, origin)
	if err != nil && !commands.IsRefusal(err) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	j.intent = r
	return err
}

// each runs a step with many nonces or intents, some at a time.
func each[T any](a *actor, all []T, do func(T) error) error {
	return commands.Each(len(all), a.Settings.AtOnce, func(i int) error { return do(all[i]) })
}

// slots are the open nonces, by rising nonce, each with its job.
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

// standing is how an open nonce stands.
type standing struct {
	lane.Slot
	*job
}

// begin makes the job of a nonce. What was claimed is known already.
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

// forget drops the jobs of nonces that are closed.
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

// refresh reads what there is news of. News of a transaction is none of the intent, which
// only its holder and its client write to.
func (a *actor) refresh(ctx context.Context) error {
	news, claim := a.box.empty()
	a.claim, a.called = a.claim || claim, claim
	var read []standing
	for _, s := range a.slots() {
		s.unread = s.unread || news.all || news.wanted[s.Nonce]
		s.stale = s.stale || s.unread || news.sent[s.Nonce]
		if s.stale {
			read = append(read, s)
		}
	}
	return each(a, read, func(s standing) error { return a.read(ctx, s) })
}

// readIntent reads the intent of a nonce. One that knows of an attempt there that the
// lane did not have when this holder read it last has been worked on by another since: as
// long as that is not known here, what the chain holds may be taken for a rival's.
func (a *actor) readIntent(ctx context.Context, s standing) error {
	read, err := a.Intents.Load(ctx, intent.Stream(s.id))
	if err != nil {
		return err // and what is known stays: an intent that is not known is none that has a place
	}
	s.job.intent = read
	it := read.State
	if !a.placed(s) {
		return nil
	}
	for _, made := range it.Attempts {
		ours := slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return m.Hash == made.Hash })
		if made.Assignment == it.Assignment && !ours {
			return overError{lane.ErrFenced.Because("%s, at nonce %d, is another holder's", made.Hash, s.Nonce)}
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

// readTx folds a transaction's stream, and keeps which block it lost last.
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
			if d.why = ""; e.Permanent {
				d.why = e.Reason
			}
		case tx.Broadcast:
			d.lacks, d.refusal = false, tx.Outcome{}
		}
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

// mayCarryOut reports whether an intent can be carried out in this lane at all, whatever
// the queue says.
func (a *actor) mayCarryOut(r intent.Request) bool {
	key, chosen := r.LaneKey()
	return r.Chain == a.Chain && (r.Signer == nil || *r.Signer == a.ID.Sender) && (!chosen || key == a.ID.Key)
}

// known reports whether the intent knows an attempt of the lane's: nobody has the bytes
// of one that it does not know. What no intent holds is known to the lane alone.
func (a *actor) known(s standing, hash chain.Hash) bool {
	if s.id.IsZero() || !a.placed(s) && a.noop(s, hash) {
		return true
	}
	return slices.ContainsFunc(s.job.intent.State.Attempts, func(made intent.Attempted) bool { return made.Hash == hash })
}

func (a *actor) noop(s standing, hash chain.Hash) bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return m.Hash == hash && m.Intent.IsZero() })
}
