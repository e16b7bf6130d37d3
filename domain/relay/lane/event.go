package lane

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one lane. Each carries the token under which it was recorded, so that the
// log alone proves that no holder wrote after a later one opened the lane.
//
//sumtype:decl
type Event interface{ fact() }

// Opened: the lane has a new holder; earlier holders are fenced off.
type Opened struct {
	Holder string    `json:"holder"`
	Token  Token     `json:"token"`
	At     time.Time `json:"at"`
}

// Advanced: the chain's next nonce is ahead of the cursor, which moves there. The first Advanced
// sets the lane's first nonce. The nonces jumped over were not reserved here: another sender used
// them, or the witness was wrong.
type Advanced struct {
	Token   Token     `json:"token"`
	From    uint64    `json:"from"` // the cursor before
	Witness Witness   `json:"witness"`
	At      time.Time `json:"at"`
}

// Reserved: intents got nonces. Intents got contiguous nonces from First, the cursor; Reissued
// got nonces that had been reserved before and released.
type Reserved struct {
	Token    Token            `json:"token"`
	First    uint64           `json:"first"`
	Intents  []chain.IntentID `json:"intents,omitempty"`
	Reissued []Issue          `json:"reissued,omitempty"` // by rising nonce
	At       time.Time        `json:"at"`
}

// Issue is a nonce assigned to an intent.
type Issue struct {
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent"`
}

// Released: an intent gave back its nonce, for which nothing was ever signed.
type Released struct {
	Token  Token          `json:"token"`
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent"`
	Reason string         `json:"reason"`
	At     time.Time      `json:"at"`
}

// Filled: a no-op is to use up the nonce, which no intent holds, so that later nonces can land.
type Filled struct {
	Token Token     `json:"token"`
	Nonce uint64    `json:"nonce"`
	At    time.Time `json:"at"`
}

// Attempted: bytes were signed for a nonce and stored. Endpoints get them only after this event.
type Attempted struct {
	Token  Token          `json:"token"`
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent,omitzero"` // zero: a no-op
	Hash   chain.Hash     `json:"hash"`
	Fee    chain.Fee      `json:"fee"`
	// Number counts the nonce's attempts from 1. Replaces is the attempt before.
	Number   int        `json:"number"`
	Replaces chain.Hash `json:"replaces,omitzero"`
	At       time.Time  `json:"at"`
}

// Landed: a block contains one of the nonce's attempts. If Final, the nonce is closed.
type Landed struct {
	Token  Token          `json:"token"`
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent,omitzero"` // of the attempt; zero: a no-op
	Hash   chain.Hash     `json:"hash"`
	Block  chain.Block    `json:"block"`
	Status uint64         `json:"status"` // 1 success, 0 reverted; either way the nonce is used
	Final  bool           `json:"final"`
	At     time.Time      `json:"at"`
}

// Unlanded: the block with the attempts of these nonces left the chain. The nonces are open
// again, and any of their attempts may land.
type Unlanded struct {
	Token  Token       `json:"token"`
	Nonces []uint64    `json:"nonces"` // falling: the last landed is the first to go
	Was    chain.Block `json:"was"`
	Now    chain.Block `json:"now"` // the canonical block that contradicts Was
	At     time.Time   `json:"at"`
}

// Lost: the final chain has used the nonce with none of its attempts. The nonce is closed.
type Lost struct {
	Token   Token          `json:"token"`
	Nonce   uint64         `json:"nonce"`
	Intent  chain.IntentID `json:"intent,omitzero"` // the nonce's holder
	Rival   chain.Hash     `json:"rival,omitzero"`  // the transaction that used it, if known
	Witness Witness        `json:"witness"`
	At      time.Time      `json:"at"`
}

// Reclaimed: the cursor jumped over the chain's next nonce, so the jump was wrong. Later nonces
// cannot land before these are used. Like released nonces, they are reserved or filled.
type Reclaimed struct {
	Token   Token     `json:"token"`
	Count   uint64    `json:"count"` // of nonces, from Witness.Nonce on
	Witness Witness   `json:"witness"`
	At      time.Time `json:"at"`
}

func (Opened) fact()    {}
func (Advanced) fact()  {}
func (Reserved) fact()  {}
func (Released) fact()  {}
func (Filled) fact()    {}
func (Attempted) fact() {}
func (Landed) fact()    {}
func (Unlanded) fact()  {}
func (Lost) fact()      {}
func (Reclaimed) fact() {}

// Witness is a quorum of endpoints for the lane's next nonce on the chain.
type Witness struct {
	Nonce uint64 `json:"nonce"`
	// Block is the block at which each endpoint answered. Final means that it was final.
	Block chain.Block `json:"block"`
	Final bool        `json:"final"`
	// Endpoints are the names of the agreeing endpoints; at least Needed of Asked had to agree.
	Endpoints []string `json:"endpoints"`
	Needed    int      `json:"needed"`
	Asked     int      `json:"asked"`
}

// Holds reports whether enough different endpoints agreed.
func (w Witness) Holds() bool {
	agreed := map[string]bool{}
	for _, name := range w.Endpoints {
		agreed[name] = true
	}
	return w.Needed >= 1 && len(agreed) >= w.Needed && len(agreed) <= w.Asked && !w.Block.IsZero()
}

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Opened]("lane.opened.v1"),
		eventlog.As[Event, Advanced]("lane.advanced.v1"),
		eventlog.As[Event, Reserved]("lane.reserved.v1"),
		eventlog.As[Event, Released]("lane.released.v1"),
		eventlog.As[Event, Filled]("lane.filled.v1"),
		eventlog.As[Event, Attempted]("lane.attempted.v1"),
		eventlog.As[Event, Landed]("lane.landed.v1"),
		eventlog.As[Event, Unlanded]("lane.unlanded.v1"),
		eventlog.As[Event, Lost]("lane.lost.v1"),
		eventlog.As[Event, Reclaimed]("lane.reclaimed.v1"),
	)
}

// StreamPrefix is the prefix of every lane's stream name.
const StreamPrefix = "lane-"

// Stream returns the name of a lane's event stream. The expiring nonce key has no lane.
func Stream(id chain.Sequence) eventlog.Stream {
	return eventlog.Stream(StreamPrefix + id.Chain.String() + "-" + id.Sender.String() + "-" + id.Key.String())
}

// ParseStream returns the lane in a name made by [Stream].
func ParseStream(s eventlog.Stream) (id chain.Sequence, err error) {
	rest, ok := strings.CutPrefix(string(s), StreamPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 3 {
		return chain.Sequence{}, fmt.Errorf("stream %q is not a lane's", s)
	}
	if id.Chain, err = chain.ParseID(parts[0]); err == nil {
		if id.Sender, err = chain.ParseAddress(parts[1]); err == nil {
			id.Key, err = chain.ParseNonceKey(parts[2])
		}
	}
	switch {
	case err != nil:
		return chain.Sequence{}, fmt.Errorf("stream %q: %w", s, err)
	case id.Key.IsExpiring() || Stream(id) != s:
		return chain.Sequence{}, fmt.Errorf("stream %q is not a lane's", s)
	}
	return id, nil
}
