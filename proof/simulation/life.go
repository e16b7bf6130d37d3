package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// life records the victim's part of a twin world, under names that are the same in both runs. In
// other worlds it records nothing.
type life struct {
	world    *world
	asks     map[string]int // number of requests by name
	handed   []*signed
	names    map[chain.Hash]string
	eligible map[chain.Hash]time.Time
	intents  map[chain.Hash]chain.IntentID // intents by the hashes of their attempts
	accepted map[chain.IntentID]time.Time
	wanted   []chain.IntentID
	rows     map[intent.Row]string // who is to sign the last intent of an ordering group
	said     promises.Life
}

func newLife(w *world) *life {
	return &life{
		world: w, asks: map[string]int{}, names: map[chain.Hash]string{}, eligible: map[chain.Hash]time.Time{},
		intents: map[chain.Hash]chain.IntentID{}, accepted: map[chain.IntentID]time.Time{}, rows: map[intent.Row]string{},
		said: promises.Life{Ends: map[string]string{}, Answers: map[string]string{}},
	}
}

// asked names a request of the victim.
func (l *life) asked(r *wish) {
	compared := []string{"submit", "rpc", "read", "cancel", "list", "intent", "read intent", "count"}
	if !l.world.plan.Twins || r.from != victim || !slices.Contains(compared, r.what) {
		return
	}
	l.asks[r.what]++
	r.name = fmt.Sprintf("%s %d", r.what, l.asks[r.what])
}

// answered records each answer to a request of the victim.
func (l *life) answered(r *wish, out *recorder) {
	if r.name == "" {
		return
	}
	answer := said(out)
	if r.what == "count" {
		answer += " " + out.body.String()
	}
	if before := l.said.Answers[r.name]; before != "" {
		answer = before + ", then " + answer
	}
	l.said.Answers[r.name] = answer
}

// signed records a transaction that the victim is about to submit.
func (l *life) signed(t *signed) {
	if !l.world.plan.Twins {
		return
	}
	l.handed = append(l.handed, t)
	l.names[t.hash] = fmt.Sprintf("payment %d", len(l.handed))
}

// see records the time from which a transaction is eligible.
func (l *life) see(fact tx.Event) {
	a, ok := fact.(tx.Accepted)
	if !ok || l.names[a.Hash] == "" {
		return
	}
	at := time.Now()
	if after := time.Unix(int64(a.EligibleAt), 0); after.After(at) { //nolint:gosec // the victim's are near
		at = after
	}
	l.eligible[a.Hash] = at
}

// seeIntent records the acceptance of an intent, and its attempts. The delay of an intent is left out
// if it is to be signed by others than the intent before it in its ordering group: it may have to wait
// until that one is final on another signer's lane. Which lane a pool gives the one before depends on
// the lanes' load, and so on other clients, as it may.
func (l *life) seeIntent(id chain.IntentID, fact intent.Event) {
	r, ok := fact.(intent.Requested)
	if !ok || !l.world.plan.Twins || r.Request.Client != l.world.tenants.names[victim] {
		return
	}
	l.wanted = append(l.wanted, id)
	row, by := r.Request.Waiting(0).Row, r.Request.Pool
	if r.Request.Signer != nil {
		by = r.Request.Signer.String()
	}
	before, met := l.rows[row]
	if row.Order != "" {
		l.rows[row] = by
	}
	if row.Order == "" || !met || before == by {
		l.accepted[id] = time.Now()
	}
}

// attempted records an attempt of an intent.
func (l *life) attempted(hash chain.Hash, id chain.IntentID) {
	if l.world.plan.Twins && !id.IsZero() {
		l.intents[hash] = id
	}
}

// sent records the first send of a transaction, and of an intent's attempt.
func (l *life) sent(raw []byte) {
	if !l.world.plan.Twins {
		return
	}
	hash := chain.Keccak(raw)
	if at, ok := l.eligible[hash]; ok {
		l.said.Sends = append(l.said.Sends, max(time.Since(at), 0))
		delete(l.eligible, hash)
	}
	id := l.intents[hash]
	if at, ok := l.accepted[id]; ok {
		l.said.Submits = append(l.said.Submits, max(time.Since(at), 0))
		delete(l.accepted, id)
	}
}

// told returns the victim's record, when the world is at rest.
func (l *life) told() promises.Life {
	if !l.world.plan.Twins {
		return promises.Life{}
	}
	executed := func(name string) { l.said.Executed = append(l.said.Executed, name) }
	for _, t := range l.handed {
		name := l.names[t.hash]
		s := stateOf(l.world, tx.Stream(chainID, t.hash))
		l.said.Ends[name] = fmt.Sprintf("%s, canceled %t", s.Status, s.Canceled)
		if _, in := l.world.chain.Receipt(t.hash); in {
			executed(name)
		}
	}
	for i, id := range l.wanted {
		name := fmt.Sprintf("intent %d", i+1)
		s := l.world.lanes.open[intent.Stream(id)]
		if l.said.Ends[name] = string(s.Status()); s.End != nil && s.End.Status == intent.StatusCompleted {
			executed(name)
		}
	}
	slices.Sort(l.said.Executed)
	return l.said
}

// stateOf folds a transaction from the log.
func stateOf(w *world, stream eventlog.Stream) (s tx.State) {
	for e, err := range w.store.ReadStream(context.Background(), stream, 0) {
		if err != nil {
			panic(err) // it is memory
		}
		if fact, err := w.judge.codec.Decode(e.Name, e.Data); err == nil { // otherwise the promises report it
			s = s.Evolve(fact)
		}
	}
	return s
}
