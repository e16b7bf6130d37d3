package promise

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Settings say what is to be judged, and by which measure. The zero Settings judge the
// log alone, by the measures beside the fields.
type Settings struct {
	// Decode reads signed bytes; nil leaves out what needs it.
	Decode func(raw []byte) (chain.Signed, error)
	// Chain is the truth about a chain; nil, or a nil Chain, leaves out what needs it.
	Chain func(chain.ID) Chain

	// Grace is how long after the end of a transaction an attempt that was under way
	// may still reach a node; 15 s.
	Grace time.Duration
	// Lead is how long before it is eligible a transaction may be sent; and Skew how
	// far the clocks of those who recorded the facts are apart. 0.
	Lead, Skew time.Duration
	// Recovery is how soon an un-mined transaction is recorded as such, and sent
	// again, and how soon a queue acts on what is due; 30 s.
	Recovery time.Duration
	// Gap bounds the pause between two attempts of what may be sent; 0 leaves it out.
	Gap time.Duration
	// Rate is how often one transaction may reach one node in a second; 5: four
	// attempts, one of which asked every node when some had been asked.
	Rate int
	// Timely bounds the 99th percentile of how late first attempts are; 0 only measures.
	Timely time.Duration
	// Linked says that there is no event without a link: the log is not older than links.
	Linked bool
	// Share is that of [Unique].
	Share func(event.ID) bool
}

const (
	defaultGrace    = 15 * time.Second
	defaultRecovery = 30 * time.Second
	defaultRate     = 5
)

// Judge judges one history. It is not safe for use by several goroutines.
type Judge struct {
	s      Settings
	codec  event.Codec[tx.Event]
	groups event.Codec[group.Event]

	last   event.Position
	ids    Unique
	open   map[Key]*life
	ended  map[Key]ended
	others map[event.Stream]other // streams of other aggregates
	// named maps the Keccak of bytes to the transaction, where that is not its hash.
	named map[Key]Key
	lanes map[lane]Key // who was executed with a nonce
	unfit map[tx.Account]bool
	group map[group.ID]*roll
	acked map[Key]time.Time // acknowledged, and not in the log yet
	asked map[string]asked  // by Idempotency-Key

	figures Figures
	cases   Cases
	found   []Violation // by the fact at hand
}

// Key is a transaction on a chain.
type Key struct {
	Chain chain.ID
	Hash  chain.Hash
}

// Figures are what was judged.
type Figures struct {
	Events       uint64         `json:"events"`
	Transactions uint64         `json:"transactions"`
	Open         uint64         `json:"open"`
	Sent         uint64         `json:"sent"`
	Calls        uint64         `json:"calls"`
	Shed         uint64         `json:"shed"` // calls turned away for want of room
	Broken       map[Number]int `json:"broken,omitempty"`
	// Late is how long after eligibility first attempts came.
	Late Spread `json:"late"`
}

// New makes a judge of a history that begins with the first event of a log.
func New(s Settings) *Judge {
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	if s.Recovery == 0 {
		s.Recovery = defaultRecovery
	}
	if s.Rate == 0 {
		s.Rate = defaultRate
	}
	return &Judge{
		s: s, codec: tx.Codec(), groups: group.Codec(),
		ids: Unique{Share: s.Share}, open: map[Key]*life{}, ended: map[Key]ended{},
		others: map[event.Stream]other{}, named: map[Key]Key{}, lanes: map[lane]Key{},
		unfit: map[tx.Account]bool{}, group: map[group.ID]*roll{},
		acked: map[Key]time.Time{}, asked: map[string]asked{},
		figures: Figures{Broken: map[Number]int{}},
	}
}

// Figures are what was judged so far.
func (j *Judge) Figures() Figures {
	f := j.figures
	f.Open = uint64(len(j.open))
	return f
}

// Cases are those of each promise so far.
func (j *Judge) Cases() Cases { return j.cases }

// broken notes a violation.
func (j *Judge) broken(n Number, s event.Stream, at event.Position, format string, args ...any) {
	j.figures.Broken[n]++
	j.found = append(j.found, Violation{n, s, at, fmt.Sprintf(format, args...)})
}

// tell returns what the fact at hand has shown.
func (j *Judge) tell() []Violation {
	found := j.found
	j.found = nil
	return found
}

// chainOf is the truth about a chain; nil if it is not known.
func (j *Judge) chainOf(id chain.ID) Chain {
	if j.s.Chain == nil {
		return nil
	}
	return j.s.Chain(id)
}

// stream names a key's events.
func (k Key) stream() event.Stream { return tx.Stream(k.Chain, k.Hash) }

// sorted lists the open lives in the order in which they were accepted.
func (j *Judge) sorted() []*life {
	all := make([]*life, 0, len(j.open))
	for _, l := range j.open {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *life) int {
		if a.position < b.position {
			return -1
		}
		return 1
	})
	return all
}
