package simulation

import (
	"encoding/json"
	"math/rand/v2"
	"time"
)

// Plan describes a seed's world completely. Everything in it follows from the seed; a plan that
// was edited or shrunk is a valid world, too.
type Plan struct {
	Seed  uint64
	Hours float64 // simulated, with faults

	Replicas   int
	Nodes      int
	Block      time.Duration // between blocks
	Finality   uint64        // blocks from the newest to the final one
	Confirm    bool          // finality is counted in blocks, instead of asking nodes
	Redis      bool
	Requests   float64 // per second
	OwnerTTL   time.Duration
	WorkLease  time.Duration
	Poll       time.Duration // of the due queue and of heads
	Retention  time.Duration
	GroupAll   bool
	StoreDelay time.Duration // usual delay of an answer
	NodeDelay  time.Duration
	Lag        time.Duration // maximum delay of subscriptions

	Store  StoreFaults
	Link   LinkFaults
	Liar   string // occasional fault of the first node; empty: none
	Chain  ChainFaults
	Crowd  ReplicaFaults
	Client ClientFaults
	Relay  RelayPlan `json:",omitzero"`

	Cluster ClusterPlan `json:",omitzero"`

	Keys    bool        `json:",omitzero"` // clients have API keys, so there are several
	Hostile HostilePlan `json:",omitzero"`
	Twins   bool        `json:",omitzero"` // run with and without the hostile parties, and compared
}

// StoreFaults are chances per call, and intervals of lasting faults.
type StoreFaults struct {
	Refuse float64       // it is not executed, and the answer says so
	Lose   float64       // it is not executed, and the outcome is unknown
	Cut    float64       // it is executed, and the outcome is unknown
	Slow   float64       // it takes seconds
	Hang   float64       // the answer comes after every caller's timeout
	Down   time.Duration // interval of outages
	Jump   time.Duration // interval of jumps of its clock
	View   float64       // a read-model transaction fails, before or after its commit
}

// LinkFaults are chances for each request to a node.
type LinkFaults struct {
	Refuse  float64 // no connection
	Cut     float64 // the node has the request, the answer is lost
	Slow    float64
	Twice   float64 // the node gets it twice
	Limit   float64 // HTTP 429
	Garbage float64 // HTTP 502 with HTML, or half an answer
	Late    float64 // it arrives after the caller's timeout
	Down    time.Duration
}

// ChainFaults are mean intervals; 0: never.
type ChainFaults struct {
	Reorg    time.Duration
	Depth    int     // maximum depth of a reorg; never below the final block
	Reinject float64 // chance that a replaced transaction returns to the pool
	Conflict float64 // chance that a replaced transaction meets a rival
	Evict    time.Duration
	Stall    time.Duration
	Burst    time.Duration
	Fees     time.Duration
	Broke    time.Duration
	Unseal   time.Duration // finality stops
	Lag      time.Duration // a node falls behind
	Revert   float64       // chance for each transaction
	Foreign  float64       // chance that its owner spends a nonce elsewhere
}

// ReplicaFaults are mean intervals; 0: never.
type ReplicaFaults struct {
	Crash    time.Duration
	CrashAll time.Duration
	Point    time.Duration // a crash at a named point
	Pause    time.Duration
	Rolling  time.Duration
	Skew     time.Duration // maximum skew of each replica's clock
	Jump     time.Duration
	Lose     time.Duration // all replicas stop, and queue and read models are lost
	Rebuild  time.Duration // all replicas stop, and the read models are lost
	Flush    time.Duration // Redis loses all data
	Gone     bool          // Redis stays down when all other faults end
}

// ClientFaults are chances per request.
type ClientFaults struct {
	Lose      float64 // the request is lost
	Cut       float64 // the answer is lost
	Duplicate float64
	Cancel    float64
	Bad       float64
}

// Expand derives a seed's plan. No world has every fault: a permanent fault hides behaviour
// without it.
func Expand(seed uint64, hours float64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x5743))
	d := dice{r}
	p := Plan{
		Seed: seed, Hours: hours,
		Replicas: 1 + d.weighted(1, 4, 4), Nodes: 3 + d.weighted(3, 1),
		Block: d.of(time.Second, 2*time.Second, 3*time.Second, 5*time.Second), Finality: uint64(2 + r.IntN(7)), //nolint:gosec // small
		Confirm: d.chance(0.3), Redis: d.chance(0.5), Requests: 1.05,
		OwnerTTL: d.of(9*time.Second, 15*time.Second, 30*time.Second), WorkLease: d.of(5*time.Second, 10*time.Second, 20*time.Second),
		Poll: d.of(2*time.Second, 4*time.Second), Retention: d.of(time.Minute, 10*time.Minute, 24*time.Hour), GroupAll: d.chance(0.2),
		StoreDelay: d.of(500*time.Microsecond, 2*time.Millisecond, 10*time.Millisecond),
		NodeDelay:  d.of(2*time.Millisecond, 20*time.Millisecond, 80*time.Millisecond),
		Lag:        d.of(100*time.Millisecond, 500*time.Millisecond, 1500*time.Millisecond),
	}
	p.Store = StoreFaults{
		Refuse: d.rate(0.02), Lose: d.rate(0.02), Cut: d.rate(0.03), Slow: d.rate(0.02), Hang: d.rate(0.003),
		Down: d.every(20 * time.Minute), Jump: d.every(15 * time.Minute), View: d.rate(0.03),
	}
	p.Link = LinkFaults{
		Refuse: d.rate(0.05), Cut: d.rate(0.05), Slow: d.rate(0.05), Twice: d.rate(0.03),
		Limit: d.rate(0.01), Garbage: d.rate(0.03), Late: d.rate(0.5), Down: d.every(10 * time.Minute),
	}
	if d.chance(0.4) {
		p.Liar = lies[r.IntN(len(lies))]
		// One liar among several nodes is tolerated. If it is the only reachable node it is
		// believed, so in such a world the others have no long outages.
		p.Link.Down, p.Link.Limit = 0, 0
	}
	p.Chain = ChainFaults{
		Reorg: d.every(3 * time.Minute), Depth: 1 + r.IntN(int(p.Finality)), Reinject: d.rate(1), Conflict: d.rate(0.5), //nolint:gosec // small
		Evict: d.every(2 * time.Minute), Stall: d.every(15 * time.Minute), Burst: d.every(10 * time.Minute), Fees: d.every(15 * time.Minute),
		Broke: d.every(10 * time.Minute), Unseal: d.every(20 * time.Minute), Lag: d.every(10 * time.Minute),
		Revert: d.rate(0.05), Foreign: d.rate(0.02),
	}
	p.Crowd = ReplicaFaults{
		Crash: d.every(5 * time.Minute), CrashAll: d.every(30 * time.Minute), Point: d.every(4 * time.Minute),
		Pause: d.every(5 * time.Minute), Rolling: d.every(30 * time.Minute), Skew: d.of(0, time.Second, 10*time.Second),
		Jump: d.every(20 * time.Minute), Lose: d.every(time.Hour), Rebuild: d.every(40 * time.Minute), Flush: d.every(5 * time.Minute),
	}
	p.Client = ClientFaults{
		Lose: d.rate(0.05), Cut: d.rate(0.05), Duplicate: d.rate(0.2), Cancel: d.rate(0.1), Bad: d.rate(0.1),
	}
	p.Crowd.Gone = p.Redis && d.chance(0.5)
	return p
}

// lies are the possible faults of the first node.
var lies = []string{"forgets", "wrong hash", "phantom receipts", "stale nonces", "high nonces", "ahead", "behind"} //nolint:gochecknoglobals // constant

func (p Plan) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(text)
}

// dice draw a plan.
type dice struct{ *rand.Rand }

func (d dice) chance(p float64) bool { return d.Float64() < p }

// weighted draws an index.
func (d dice) weighted(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

func (d dice) of(choices ...time.Duration) time.Duration { return choices[d.IntN(len(choices))] }

// rate switches a fault on or off, and draws its chance.
func (d dice) rate(most float64) float64 {
	on, share := d.chance(0.6), d.Float64()
	if !on {
		return 0
	}
	return most * (0.1 + 0.9*share)
}

// every switches a fault on or off, and draws its mean interval.
func (d dice) every(usual time.Duration) time.Duration {
	on, often := d.chance(0.6), d.about(usual)
	if !on {
		return 0
	}
	return often
}

// about draws the mean interval of an event that always exists.
func (d dice) about(usual time.Duration) time.Duration {
	return time.Duration((0.4 + 1.2*d.Float64()) * float64(usual))
}
