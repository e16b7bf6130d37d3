package intent

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Waiting is an intent in the work queue, with the fields that decide which lane may claim it. It
// is derived from the intent's first event alone.
type Waiting struct {
	ID       chain.IntentID
	Position eventlog.Position // of its Requested: the queue's order
	Chain    chain.ID
	Client   string // the requesting client; see [Request.Client]
	From     From
	// Key is the required nonce key; nil lets the claiming lane choose. See [Request.LaneKey].
	Key      *chain.NonceKey
	Row      Row
	Deadline uint64 // Unix seconds; 0: never
	// NotBefore is [Request.NotBefore]: until then the row is not given to a lane.
	NotBefore uint64
	// MaxFee is [Gas.MaxFee], which never changes. A lane compares it with the price of gas before
	// it reads the intent. 0: no ceiling, or a row from before this field.
	MaxFee Amount
	// Size is [Request.Size]; 0: a row from before this field.
	Size int
}

// Row is an ordering group: a client's intents on a chain with the same ordering key, which land
// in the order of their requests. Empty Order: no group, and no waiting.
type Row struct {
	Chain  chain.ID
	Client string
	Order  string
}

// Claim is a lane holder's request for intents to carry out.
type Claim struct {
	Lane chain.Sequence
	// Pools are the pools of the lane's signer.
	Pools []string
	// Holder is the claimant: one run of one process, for this lane.
	Holder string
	TTL    time.Duration // after which the claim lapses
	Limit  int           // at least 1
	// OnlyAsked leaves out intents without a required nonce key. It is set for a lane that runs
	// because one client asked for its key: other clients' intents there would wait for that
	// client's nonces.
	OnlyAsked bool
	// Client is the client that asked for the lane; claims of OnlyAsked lanes take turns by it. It
	// decides nothing else.
	Client string
	// After excludes intents up to this position, and so the later intents of their ordering
	// groups.
	After eventlog.Position
	// Turn is the client of the last intent that the lane was given: the claim begins with the
	// next client by name.
	Turn string
}

// Claimed is an intent that is reserved for one claimant until the claim lapses.
type Claimed struct {
	Waiting
	// Behind is the queued intent right before it in its ordering group; zero if there is none.
	// By the queue's knowledge it has a nonce in the claimant's lane, or is claimed for it. The
	// claimant has to check that this still holds.
	Behind chain.IntentID
}

// Change is the effect of one recorded event on the work queue. Exactly one of Open, Place,
// Requeue and Close is set. Changes are idempotent. Without a row, only Open has an effect.
type Change struct {
	ID      chain.IntentID
	Open    *Waiting // a new waiting row; ignored if the row exists
	Place   *Place   // it has a nonce in a lane of its chain and stops waiting; a claim ends
	Requeue bool     // it has lost its nonce and waits again at its old position
	Close   bool     // the intent has ended: delete the row
}

// AwakenMost bounds the sleeping rows that one claim wakes.
const AwakenMost = 1000

// Demand counts a client's intents for one lane, or for any of several. Sleeping rows do not count.
type Demand struct {
	From   From            // for assigned intents, the signer
	Key    *chain.NonceKey // nil: any
	Client string
	// First is the position of the earliest of them.
	First eventlog.Position
	// Waiting have no nonce; Assigned have a nonce in the lane.
	Waiting, Assigned int
}

// Plan returns the effect on the work queue of an event recorded at a position; ok is false if
// there is none. A [Reorged] restores a row, but the event alone lacks its content. The caller
// rebuilds it from the stream up to that event; its intent still has its nonce.
func Plan(id chain.IntentID, e Event, at eventlog.Position) (c Change, ok bool) {
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

// Waiting returns the request's work queue entry, recorded at a position.
func (r Request) Waiting(at eventlog.Position) Waiting {
	w := Waiting{
		ID: r.ID(), Position: at, Chain: r.Chain, Client: r.Client, From: r.From, NotBefore: r.NotBefore, Deadline: r.Deadline,
		MaxFee: r.Gas.MaxFee, Size: r.Size(),
	}
	if key, chosen := r.LaneKey(); chosen {
		w.Key = &key
	}
	if r.Order != "" {
		w.Row = Row{r.Chain, r.Client, r.Order}
	}
	return w
}

// sizeBase is the part of [Request.Size] that stands for all fields of bounded length, and for an
// intent's other events.
const sizeBase = 1 << 10

// Size returns about how many bytes a store reads for an intent with this request: mostly its
// calls' input, which events hold as hex digits. It is never 0.
func (r Request) Size() int {
	n := sizeBase
	for _, c := range r.Calls {
		n += 2*len(c.Data) + len(chain.Address{})
	}
	for _, w := range r.Webhooks {
		n += len(w.URL)
	}
	for name, value := range r.Metadata {
		n += len(name) + len(value)
	}
	return n
}

// AheadMost bounds how many intents of an ordering group are read to find the intent ahead of
// another: see commands/relay/worker.Queue.
const AheadMost = 100

// orderDomain and orderFirst form the nonce keys of ordering groups. The first byte differs from
// the explicit grouping format, the validators' keys and the expiring key.
const (
	orderDomain = "watchtower.intent.order.v1"
	orderFirst  = 0x4f
)

// LaneKey returns the required nonce key; chosen is false if the relay may choose. For
// [NonceOrdered], the key is the Keccak-256 of the client and the ordering key, in the form of
// [Request.Digest], with its first byte set to 0x4f.
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
