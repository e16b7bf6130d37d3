package promises

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Settings select the checks and their limits. The zero Settings judge the log alone, with the
// defaults given at the fields.
type Settings struct {
	// Decode decodes signed bytes; nil skips the checks that need it.
	Decode func(raw []byte) (chain.Signed, error)
	// Chain returns the truth about a chain; nil, or a nil result, skips the checks that need it.
	Chain func(chain.ID) Chain

	// Grace is how long after a transaction's end a running attempt may still reach a node;
	// default 15 s.
	Grace time.Duration
	// Lead is how long before its eligibility a transaction may be sent. Skew is the difference
	// between the clocks of the fact recorders. Default 0.
	Lead, Skew time.Duration
	// Recovery is the time limit to record an un-mined transaction and to send it again, and for
	// a queue to act on due rows; default 30 s.
	Recovery time.Duration
	// Gap bounds the pause between two attempts of a sendable transaction; 0 skips the check.
	Gap time.Duration
	// Rate is how often one transaction may reach one node per second; default 5. That is four
	// attempts, one of which asked the rest of the nodes as well.
	Rate int
	// Timely bounds the 99th percentile of the delay of first attempts; 0 only measures it.
	Timely time.Duration
	// Linked means that every event must have a link: the log does not predate links.
	Linked bool
	// Share is used as [Unique.Share].
	Share func(eventlog.ID) bool
}

const (
	defaultGrace    = 15 * time.Second
	defaultRecovery = 30 * time.Second
	defaultRate     = 5
)

// Judge judges one history. It is not safe for concurrent use.
type Judge struct {
	s      Settings
	codec  eventlog.Codec[tx.Event]
	groups eventlog.Codec[group.Event]

	last   eventlog.Position
	ids    Unique
	open   map[Key]*life
	ended  map[Key]ended
	others map[eventlog.Stream]other // streams of other aggregates
	// named maps the Keccak of the bytes to the transaction, if it differs from the transaction's
	// hash.
	named map[Key]Key
	lanes map[lane]Key // the executed transaction of each nonce
	unfit map[tx.Account]bool
	group map[group.ID]*roll
	acked map[Key]time.Time // acknowledged, but not in the log yet
	asked map[string]asked  // by Idempotency-Key

	figures Figures
	cases   Cases
	found   []Violation // by the current fact
}

// Key identifies a transaction on a chain.
type Key struct {
	Chain chain.ID
	Hash  chain.Hash
}

// Figures are the numbers of judged facts.
type Figures struct {
	Events       uint64         `json:"events"`
	Transactions uint64         `json:"transactions"`
	Open         uint64         `json:"open"`
	Sent         uint64         `json:"sent"`
	Calls        uint64         `json:"calls"`
	Shed         uint64         `json:"shed"` // calls refused for lack of capacity
	Broken       map[Number]int `json:"broken,omitempty"`
	// Late is the delay of first attempts after eligibility.
	Late Spread `json:"late"`
}

// New returns a judge of a history that begins with the first event of a log.
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
		others: map[eventlog.Stream]other{}, named: map[Key]Key{}, lanes: map[lane]Key{},
		unfit: map[tx.Account]bool{}, group: map[group.ID]*roll{},
		acked: map[Key]time.Time{}, asked: map[string]asked{},
		figures: Figures{Broken: map[Number]int{}},
	}
}

// Figures returns the numbers so far.
func (j *Judge) Figures() Figures {
	f := j.figures
	f.Open = uint64(len(j.open))
	return f
}

// Cases returns the cases of each promise so far.
func (j *Judge) Cases() Cases { return j.cases }

// broken records a violation.
func (j *Judge) broken(n Number, s eventlog.Stream, at eventlog.Position, format string, args ...any) {
	j.figures.Broken[n]++
	j.found = append(j.found, Violation{n, s, at, fmt.Sprintf(format, args...)})
}

// tell returns the violations by the current fact.
func (j *Judge) tell() []Violation {
	found := j.found
	j.found = nil
	return found
}

// chainOf returns the truth about a chain; nil if unknown.
func (j *Judge) chainOf(id chain.ID) Chain {
	if j.s.Chain == nil {
		return nil
	}
	return j.s.Chain(id)
}

// stream returns the name of the key's event stream.
func (k Key) stream() eventlog.Stream { return tx.Stream(k.Chain, k.Hash) }

// sorted returns the open lives in order of acceptance.
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
