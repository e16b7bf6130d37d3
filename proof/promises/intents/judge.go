// Package intents checks that the relay keeps its promises about intents: by the log, by clients'
// answers and notices, and by the chain if known. It follows each intent by rules of its own,
// independent of package intent, so that the judged code does not judge itself. It keeps every
// intent in memory.
//
// It decides P3, P10 and P23 for intents, P35, and P22: a [Judge] checks the events to report,
// and a [Consumer] the reported notices.
package intents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Judge judges one history. It is not safe for concurrent use.
type Judge struct {
	codec  eventlog.Codec[intent.Event]
	lives  map[chain.IntentID]*life
	landed map[spot]chain.IntentID // the intent that completed with each nonce
	asked  map[chain.IntentID]chain.Hash
	rows   map[intent.Row][]*life        // in order of request
	kept   map[chain.Hash]chain.IntentID // attempts that must not be delivered, with their intents
	cases  promises.Cases
	found  []promises.Violation
}

// spot is a nonce on a chain.
type spot struct {
	chain chain.ID
	place intent.Place
}

// life is the judge's state of an intent.
type life struct {
	id       chain.IntentID
	position eventlog.Position // of its first event
	request  intent.Requested
	sequence uint64
	place    *intent.Place
	times    int // number of its assignments
	token    uint64
	attempts []intent.Attempted
	view     View
	block    chain.Block  // the end's block
	done     bool         // the end is a Completed
	toEnd    bool         // it is to end without effect
	moved    bool         // it lost a place, other than by a release
	back     bool         // it had ended, and the end's block left the chain
	givesWay int          // the assignment at which it gives way
	filled   []chain.Hash // no-ops that it gave way to, in final blocks
}

// View is the public state of an intent: its receipt, its confirmations, and its end.
type View struct {
	Receipt       *chain.Receipt
	Confirmations []chain.Block
	End           string // "", "done", or the reason of its failure
}

func (v View) equal(w View) bool {
	same := v.Receipt == nil && w.Receipt == nil
	if v.Receipt != nil && w.Receipt != nil {
		same = v.Receipt.Block == w.Receipt.Block && v.Receipt.Status == w.Receipt.Status
	}
	return same && v.End == w.End && slices.Equal(v.Confirmations, w.Confirmations)
}

func (v View) String() string {
	in := "no block"
	if v.Receipt != nil {
		in = fmt.Sprintf("block %d, %s", v.Receipt.Block.Number, v.Receipt.Block.Hash)
	}
	return fmt.Sprintf("%s, %d confirmations, end %q", in, len(v.Confirmations), v.End)
}

// New returns a judge of a history that begins with the first event of a log.
func New() *Judge {
	return &Judge{
		codec: intent.Codec(), lives: map[chain.IntentID]*life{},
		landed: map[spot]chain.IntentID{}, asked: map[chain.IntentID]chain.Hash{}, rows: map[intent.Row][]*life{},
		kept: map[chain.Hash]chain.IntentID{},
	}
}

func (j *Judge) broken(n promises.Number, r eventlog.Recorded, format string, args ...any) {
	j.found = append(j.found, promises.Violation{Promise: n, Stream: r.Stream, Position: r.Position, Evidence: fmt.Sprintf(format, args...)})
}

// Cases returns the cases of each promise so far.
func (j *Judge) Cases() promises.Cases { return j.cases }

func (j *Judge) tell() []promises.Violation {
	found := j.found
	j.found = nil
	return found
}

// Event judges the next event of the log. In streams other than intents', it checks only the
// relay's deliveries.
func (j *Judge) Event(r eventlog.Recorded) []promises.Violation {
	if !strings.HasPrefix(string(r.Stream), intent.StreamPrefix) {
		j.delivered(r)
		return j.tell()
	}
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		j.broken(promises.P30, r, "%v", err)
		return j.tell()
	}
	e, err := j.codec.Decode(r.Name, r.Data)
	if err != nil {
		j.broken(promises.P30, r, "%v", err)
		return j.tell()
	}
	l := j.lives[id]
	if l == nil {
		l = &life{id: id, position: r.Position}
		j.lives[id] = l
		if _, first := e.(intent.Requested); !first {
			j.broken(promises.P3, r, "the stream begins with %s, not with its request", r.Name)
		}
	}
	j.inOrder(l, r, e)
	j.fact(l, r, e)
	return j.tell()
}

// inOrder checks the part of P22 about sequences, and the part of P10 about ends.
func (j *Judge) inOrder(l *life, r eventlog.Recorded, e intent.Event) {
	if n := intent.SequenceOf(e); n != 0 {
		if n != l.sequence+1 {
			j.broken(promises.P22, r, "sequence %d follows %d", n, l.sequence)
		}
		l.sequence = max(l.sequence, n)
	}
	_, announced := e.(intent.Announced)
	_, reorged := e.(intent.Reorged)
	if l.view.End != "" && !announced && !reorged {
		j.broken(promises.P10, r, "%s follows the end, %s, without a reorg in between", r.Name, l.view.End)
	}
}

func (j *Judge) fact(l *life, r eventlog.Recorded, e intent.Event) {
	switch e := e.(type) {
	case intent.Requested:
		j.requested(l, r, e)
	case intent.Assigned:
		if l.place != nil {
			j.broken(promises.P10, r, "it gets nonce %d while it has %d, and nothing shows that it cannot land there", e.Place.Nonce, l.place.Nonce)
		}
		j.inRow(l, r, e.Place)
		l.place, l.times, l.token = &e.Place, l.times+1, e.Token
	case intent.TakenOver:
		if _, signed := l.signed(chain.Hash{}); l.place == nil || e.Assignment != l.times || signed {
			j.broken(promises.P10, r, "assignment %d is taken over, which it does not have, or is signed for", e.Assignment)
		}
		if e.Token <= l.token {
			j.broken(promises.P7, r, "token %d takes over from %d", e.Token, l.token)
		}
		l.token = e.Token
	case intent.Requeued:
		j.requeued(l, r, e)
	case intent.Attempted:
		if l.place == nil || e.Assignment != l.times {
			j.broken(promises.P10, r, "%s is signed for assignment %d, which it does not have", e.Hash, e.Assignment)
		}
		if !l.toEnd && l.givesWay != l.times && e.Kind == intent.NoOp {
			j.broken(promises.P10, r, "the no-op %s is signed, though the intent is not being stopped", e.Hash)
		}
		l.attempts = append(l.attempts, e)
		if l.toEnd && e.Kind != intent.NoOp {
			j.kept[e.Hash] = l.id
		}
	case intent.CancelRequested:
		l.toEnd = true
	case intent.SpeedUpRequested, intent.YieldRequested: // effective at the next signature; no promise about them
	case intent.GiveWayRequested:
		if _, signed := l.signed(chain.Hash{}); l.place == nil || e.Assignment != l.times || !signed || l.view.Receipt != nil {
			j.broken(promises.P10, r, "it yields to a no-op at assignment %d, where it has no attempt", e.Assignment)
		}
		l.givesWay = e.Assignment
	case intent.Announced:
		j.announced(l, r, e)
	case intent.Reorged:
		if l.view.End == "" || l.block.IsZero() {
			j.broken(promises.P10, r, "block %d withdraws an end that no block had caused", e.Was.Number)
		}
		if l.done && l.place != nil {
			delete(j.landed, spot{l.request.Request.Chain, *l.place})
		}
		l.view.End, l.block, l.done, l.back = "", chain.Block{}, false, true
	case intent.Completed:
		j.completed(l, r, e)
	case intent.Failed:
		j.ended(l, r, string(e.Reason), e.Block)
	case intent.Canceled:
		j.cases.Add(promises.P23)
		j.ended(l, r, string(intent.Withdrawn), e.Block)
	}
}

// requested checks P3: one request created the intent, with the right id and digest.
func (j *Judge) requested(l *life, r eventlog.Recorded, e intent.Requested) {
	switch {
	case !l.request.ID.IsZero():
		j.broken(promises.P3, r, "it is requested again")
		return
	case e.ID != l.id || e.Request.ID() != l.id:
		j.broken(promises.P3, r, "client, signer or pool, and key make the intent %s", e.Request.ID())
	case e.Request.Digest() != e.Digest:
		j.broken(promises.P3, r, "the request has the digest %s, recorded is %s", e.Request.Digest(), e.Digest)
	}
	l.request = e
	if row := rowOf(l); row.Order != "" {
		j.rows[row] = append(j.rows[row], l)
	}
}

// signed returns an attempt at the present place; any if hash is zero.
func (l *life) signed(hash chain.Hash) (intent.Attempted, bool) {
	for _, a := range l.attempts {
		if a.Assignment == l.times && (hash.IsZero() || a.Hash == hash) {
			return a, true
		}
	}
	return intent.Attempted{}, false
}

// requeued checks P10: an intent that may be in the chain does not move to another nonce.
func (j *Judge) requeued(l *life, r eventlog.Recorded, e intent.Requeued) {
	j.cases.Add(promises.P10)
	first, signed := l.signed(chain.Hash{})
	own := slices.ContainsFunc(l.attempts, func(a intent.Attempted) bool { return a.Hash == e.Evidence.Hash })
	if made, at := l.signed(e.Evidence.Hash); e.Evidence.Kind == intent.Filled {
		if own = !at || made.Kind != intent.NoOp || l.givesWay != l.times || l.toEnd; !own {
			l.filled = append(l.filled, e.Evidence.Hash)
		}
	}
	switch {
	case l.place == nil || e.Assignment != l.times:
		j.broken(promises.P10, r, "assignment %d ends, which it does not have", e.Assignment)
	case e.Evidence.Kind == intent.Released && signed:
		j.broken(promises.P10, r, "nonce %d is released, but %s was signed for it", l.place.Nonce, first.Hash)
	case e.Evidence.Kind != intent.Released && e.Evidence.Block.IsZero():
		j.broken(promises.P10, r, "no final block shows that it cannot land (%q)", e.Evidence.Kind)
	case own:
		j.broken(promises.P10, r, "%s is not a rival, but one of its own attempts", e.Evidence.Hash)
	case l.view.Receipt != nil:
		j.broken(promises.P10, r, "it is moved while block %d holds it", l.view.Receipt.Block.Number)
	}
	l.place, l.moved = nil, l.moved || e.Evidence.Kind != intent.Released
}

// announced checks P22: NewFork is set exactly when earlier confirmations have changed, with the
// whole list. Otherwise the confirmations continue the list.
func (j *Judge) announced(l *life, r eventlog.Recorded, e intent.Announced) {
	j.cases.Add(promises.P22)
	if _, known := l.signed(e.Hash); !known {
		j.broken(promises.P22, r, "%s is announced, which is not an attempt at its nonce", e.Hash)
	}
	if e.Kind == intent.AboutReceipt {
		l.view.Receipt = e.Receipt
		return
	}
	before, list := l.view.Confirmations, e.Confirmations
	kept := len(list) >= len(before) && slices.Equal(before, list[:len(before)])
	switch {
	case e.NewFork && (len(before) == 0 || kept):
		j.broken(promises.P22, r, "a new fork is announced, but none of the %d earlier confirmations has changed", len(before))
	case !e.NewFork && len(list) == 0:
		j.broken(promises.P22, r, "no confirmations are announced")
	case !e.NewFork && len(before) > 0 && list[0].Parent != before[len(before)-1].Hash:
		j.broken(promises.P22, r, "block %d is not a child of %d, and no new fork is announced", list[0].Number, before[len(before)-1].Number)
	}
	if !e.NewFork {
		list = slices.Concat(before, list)
	}
	for i := 1; i < len(list); i++ {
		if list[i].Parent != list[i-1].Hash {
			j.broken(promises.P22, r, "block %d is not a child of %d", list[i].Number, list[i-1].Number)
		}
	}
	if got := l.view.Receipt; got == nil && len(list) > 0 || got != nil && (len(list) == 0 || list[0].Hash != got.Block.Hash) {
		j.broken(promises.P22, r, "the confirmations do not belong to the block that was announced to contain it")
	}
	l.view.Confirmations = list
}

// completed checks P10: an attempt of the intent at its nonce executed it, and no other intent
// completed with that nonce.
func (j *Judge) completed(l *life, r eventlog.Recorded, e intent.Completed) {
	j.cases.Add(promises.P10)
	made, own := l.signed(e.Hash)
	switch got := l.view.Receipt; {
	case !own || made.Kind == intent.NoOp || l.place == nil:
		j.broken(promises.P10, r, "%s did not do it", e.Hash)
	case got == nil || got.Block.Hash != e.Block.Hash || got.Status != 1:
		j.broken(promises.P10, r, "block %d was not announced to contain it as a success", e.Block.Number)
	}
	if l.place != nil {
		at := spot{l.request.Request.Chain, *l.place}
		if other, taken := j.landed[at]; taken && other != l.id {
			j.broken(promises.P10, r, "intent %s was done by the same nonce", other)
		}
		j.landed[at] = l.id
	}
	j.ended(l, r, "done", e.Block)
	l.done = true
}

// ended checks P10 for all ends: an intent that may still land has not ended.
func (j *Judge) ended(l *life, r eventlog.Recorded, how string, block chain.Block) {
	switch {
	case block.IsZero() && l.place != nil:
		j.broken(promises.P10, r, "it ends for ever, and may land with nonce %d", l.place.Nonce)
	case !block.IsZero() && (l.view.Receipt == nil || l.view.Receipt.Block.Hash != block.Hash):
		j.broken(promises.P10, r, "it ends by block %d, which was not announced to contain it", block.Number)
	}
	l.view.End, l.block, l.done = how, block, false
}

// Call is one request for an intent, with its answer.
type Call struct {
	Client string
	From   intent.From
	Key    string
	Digest chain.Hash // of the request
	Result promises.Result
	ID     chain.IntentID // in the answer
}

// Call judges a client's request and its answer: P3 at once, and P1 when the history ends.
func (j *Judge) Call(c Call) []promises.Violation {
	if c.Result != promises.OK {
		return nil
	}
	want := intent.ID(c.Client, c.From, c.Key)
	of := eventlog.Recorded{Stream: intent.Stream(want)}
	if c.ID != want {
		j.broken(promises.P3, of, "the key %q was answered with %s", c.Key, c.ID)
	}
	before, known := j.asked[want]
	if known {
		j.cases.Add(promises.P3)
	}
	if known && before != c.Digest {
		j.broken(promises.P3, of, "the key %q was accepted with two different requests", c.Key)
	}
	j.asked[want] = c.Digest
	return j.tell()
}
