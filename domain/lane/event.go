package lane

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one lane. Each says under which token it was recorded, so
// that the log alone shows that no holder wrote after a later one had opened.
//
//sumtype:decl
type Event interface{ fact() }

// Opened: a holder has the lane from here on, and nobody before it any more.
type Opened struct {
	Holder string    `json:"holder"`
	Token  Token     `json:"token"`
	At     time.Time `json:"at"`
}

// Advanced: the chain wants a nonce that lies ahead of the cursor, which moves
// there. The first one is how a lane learns where it begins. What lies between was
// handed out by nobody here; it was used by somebody else, or the witness lied.
type Advanced struct {
	Token   Token     `json:"token"`
	From    uint64    `json:"from"` // where the cursor was
	Witness Witness   `json:"witness"`
	At      time.Time `json:"at"`
}

// Reserved: intents got nonces. Those of Intents are contiguous from First, which
// was the cursor; those of Reissued had been handed out before, and released.
type Reserved struct {
	Token    Token            `json:"token"`
	First    uint64           `json:"first"`
	Intents  []chain.IntentID `json:"intents,omitempty"`
	Reissued []Issue          `json:"reissued,omitempty"` // by rising nonce
	At       time.Time        `json:"at"`
}

// Issue is a nonce that an intent got.
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

// Filled: a no-op is to use up the nonce, which no intent holds, so that those above
// it can land.
type Filled struct {
	Token Token     `json:"token"`
	Nonce uint64    `json:"nonce"`
	At    time.Time `json:"at"`
}

// Attempted: bytes were signed for a nonce and are kept. An endpoint may have them
// from here on, and not before.
type Attempted struct {
	Token  Token          `json:"token"`
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent,omitzero"` // zero is a no-op
	Hash   chain.Hash     `json:"hash"`
	Fee    chain.Fee      `json:"fee"`
	// Number counts the nonce's attempts from 1, and Replaces is the one before.
	Number   int        `json:"number"`
	Replaces chain.Hash `json:"replaces,omitzero"`
	At       time.Time  `json:"at"`
}

// Landed: a block holds one of the nonce's attempts. Once that block is final the
// nonce is closed.
type Landed struct {
	Token  Token          `json:"token"`
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent,omitzero"` // of the attempt; zero is a no-op
	Hash   chain.Hash     `json:"hash"`
	Block  chain.Block    `json:"block"`
	Status uint64         `json:"status"` // 1 success, 0 reverted; either way the nonce is used
	Final  bool           `json:"final"`
	At     time.Time      `json:"at"`
}

// Unlanded: the block in which the attempts of these nonces had landed has left the
// chain. They are open again, and any of their attempts may land.
type Unlanded struct {
	Token  Token       `json:"token"`
	Nonces []uint64    `json:"nonces"` // falling: the last to land is the first to go
	Was    chain.Block `json:"was"`
	Now    chain.Block `json:"now"` // the canonical one that contradicts it
	At     time.Time   `json:"at"`
}

// Lost: the final chain has used the nonce, and by none of its attempts. It is closed.
type Lost struct {
	Token   Token          `json:"token"`
	Nonce   uint64         `json:"nonce"`
	Intent  chain.IntentID `json:"intent,omitzero"` // that held it
	Rival   chain.Hash     `json:"rival,omitzero"`  // what used it, if that is known
	Witness Witness        `json:"witness"`
	At      time.Time      `json:"at"`
}

// Reclaimed: the chain wants a nonce that the cursor had jumped over. So the jump was
// wrong, and what lies above cannot land before these nonces are used: they are
// handed out, or filled, as released ones are.
type Reclaimed struct {
	Token   Token     `json:"token"`
	Count   uint64    `json:"count"` // of nonces, from the one that the witness saw
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

// Witness is what endpoints said the chain wants next in the lane.
type Witness struct {
	Nonce uint64 `json:"nonce"`
	// Block is the one as of which they said so, each of them, and Final that it
	// was final.
	Block chain.Block `json:"block"`
	Final bool        `json:"final"`
	// Endpoints are the names of those that agreed; Needed of Asked had to.
	Endpoints []string `json:"endpoints"`
	Needed    int      `json:"needed"`
	Asked     int      `json:"asked"`
}

// Holds reports whether as many different endpoints agreed as had to.
func (w Witness) Holds() bool {
	agreed := map[string]bool{}
	for _, name := range w.Endpoints {
		agreed[name] = true
	}
	return w.Needed >= 1 && len(agreed) >= w.Needed && len(agreed) <= w.Asked && !w.Block.IsZero()
}

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, Opened]("lane.opened.v1"),
		event.As[Event, Advanced]("lane.advanced.v1"),
		event.As[Event, Reserved]("lane.reserved.v1"),
		event.As[Event, Released]("lane.released.v1"),
		event.As[Event, Filled]("lane.filled.v1"),
		event.As[Event, Attempted]("lane.attempted.v1"),
		event.As[Event, Landed]("lane.landed.v1"),
		event.As[Event, Unlanded]("lane.unlanded.v1"),
		event.As[Event, Lost]("lane.lost.v1"),
		event.As[Event, Reclaimed]("lane.reclaimed.v1"),
	)
}

// StreamPrefix begins the name of every lane's stream.
const StreamPrefix = "lane-"

// Stream names a lane's events. The expiring nonce key is no sequence, and has no lane.
func Stream(id chain.Sequence) event.Stream {
	return event.Stream(StreamPrefix + id.Chain.String() + "-" + id.Sender.String() + "-" + id.Key.String())
}

// ParseStream reads which lane it is off the name that [Stream] gave.
func ParseStream(s event.Stream) (id chain.Sequence, err error) {
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
