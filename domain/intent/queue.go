package intent

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Waiting is an intent in the work queue, as far as it decides who may take it. It
// follows from the intent's first event alone.
type Waiting struct {
	ID       chain.IntentID
	Position event.Position // of its Requested: the queue's order
	Chain    chain.ID
	Client   string // who asked for it; see [Request.Client]
	From     From
	// Key is the nonce key that it has to stand under; nil leaves the choice to whoever
	// takes it. See [Request.LaneKey].
	Key      *chain.NonceKey
	Row      Row
	Deadline uint64 // Unix seconds; 0 never
}

// Row is the intents of a client that land in the order of asking: those of a chain
// with the same ordering key. One whose Order is empty is no row, and nothing waits
// in it.
type Row struct {
	Chain  chain.ID
	Client string
	Order  string
}

// Claim is the wish of a lane's holder for intents to carry out.
type Claim struct {
	Lane chain.Sequence
	// Pools are those that the lane's signer belongs to.
	Pools []string
	// Holder is who claims: one run of one process, for this lane.
	Holder string
	TTL    time.Duration // the claim lapses after so long
	Limit  int           // at least 1
	// OnlyAsked leaves out intents that leave the nonce key to the relay. A lane that runs
	// because one client asked for its key claims so: the intents of others would wait there
	// for that client's nonces.
	OnlyAsked bool
	// After has what stands up to there passed over, and of a row what stands behind that.
	After event.Position
	// Turn is the client of the last intent that the lane was given: the claim begins with
	// the next client in the order of names.
	Turn string
}

// Claimed is an intent that is its claimant's alone until the claim lapses.
type Claimed struct {
	Waiting
	// Behind is the intent right before it in its row, of those that are in the queue;
	// zero when there is none. As far as the queue has heard it has a nonce in the
	// claimant's lane, or is claimed for it: so the claimant has to look whether it still is.
	Behind chain.IntentID
}

// Change is what one recorded fact means to the work queue. Exactly one of Open,
// Place, Requeue and Close is set. Applying a change twice changes nothing more, and
// of an intent without a row only Open does anything.
type Change struct {
	ID      chain.IntentID
	Open    *Waiting // a new row, which waits; ignored when the row exists
	Place   *Place   // it has a nonce in a lane of its chain, and waits no more; a claim ends
	Requeue bool     // it has none any more, and waits again where it stood before
	Close   bool     // it has come out: the row goes
}

// Demand is how many intents of a client there are for a lane, or for any of several.
type Demand struct {
	From   From            // of assigned ones, the signer alone
	Key    *chain.NonceKey // nil is any
	Client string
	// First is the position of the earliest of them.
	First event.Position
	// Waiting have no nonce, Assigned have one in the lane.
	Waiting, Assigned int
}

// Plan is what a fact, recorded at a position, means to the work queue; ok is false
// when it means nothing. A [Reorged] brings a row back that the fact alone does not
// tell: the stream does, as it stood by then, and what is in it has a nonce still.
func Plan(id chain.IntentID, e Event, at event.Position) (c Change, ok bool) {
	c.ID = id
	switch e := e.(type) {
	case Requested:
		w := e.Request.Waiting(at)
		c.Open = &w
	case Assigned:
		c.Place = &e.Place
	case Requeued:
		c.Requeue = true
	case Completed, Failed, Canceled:
		c.Close = true
	case TakenOver, Attempted, CancelRequested, SpeedUpRequested, YieldRequested, GiveWayRequested, Announced, Reorged:
		return c, false
	default:
		panic(fmt.Sprintf("intent: unknown event %T", e))
	}
	return c, true
}

// Waiting is the request in the work queue, when it was recorded at a position.
func (r Request) Waiting(at event.Position) Waiting {
	w := Waiting{ID: r.ID(), Position: at, Chain: r.Chain, Client: r.Client, From: r.From, Deadline: r.Deadline}
	if key, chosen := r.LaneKey(); chosen {
		w.Key = &key
	}
	if r.Order != "" {
		w.Row = Row{r.Chain, r.Client, r.Order}
	}
	return w
}

// orderDomain and orderFirst make the nonce keys of rows: the first byte is that of
// neither the explicit grouping format, nor the validators' keys, nor the expiring one.
const (
	orderDomain = "watchtower.intent.order.v1"
	orderFirst  = 0x4f
)

// LaneKey is the nonce key that the request has to stand under. chosen is false when
// that is left to the relay. The one of [NonceOrdered] is the Keccak-256 of the client
// and the ordering key, in the form of [Request.Digest], its first byte set to 0x4f.
func (r Request) LaneKey() (key chain.NonceKey, chosen bool) {
	switch p := r.NonceKey; p.Mode {
	case NonceAny:
		return key, false
	case NonceProtocol:
		return key, true
	case NonceFixed:
		return *p.Key, true
	case NonceOrdered:
		key = chain.NonceKey(chain.Keccak(form{}.text("domain", orderDomain).text("client", r.Client).text("order", r.Order)))
		key[0] = orderFirst
		return key, true
	}
	panic(fmt.Sprintf("intent: unknown mode of nonce key %q", r.NonceKey.Mode))
}
