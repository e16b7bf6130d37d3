package notice

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about an endpoint: who wished what about it, or what was done about it
// by itself. What its notices are and whether they were sent is no fact of the log.
//
//sumtype:decl
type Event interface{ fact() }

// WasDisabled: nothing is sent to the endpoint from now on.
type WasDisabled struct {
	Endpoint EndpointID `json:"endpoint"`
	// Reason is Operator when it is a wish; else it says why it was done by itself.
	Reason Reason    `json:"reason"`
	At     time.Time `json:"at"`
}

// WasEnabled: somebody wishes that it be sent to again, with a clean record.
type WasEnabled struct {
	Endpoint EndpointID `json:"endpoint"`
	At       time.Time  `json:"at"`
}

// RedeliveryAsked: somebody wishes that notices be sent again.
type RedeliveryAsked struct {
	Endpoint EndpointID `json:"endpoint"`
	// Notices are which; none stands for all that are dead.
	Notices []Ref     `json:"notices,omitempty"`
	At      time.Time `json:"at"`
}

// Keys are the notices that are named.
func (r RedeliveryAsked) Keys() []Key {
	keys := make([]Key, len(r.Notices))
	for i, n := range r.Notices {
		keys[i] = Key{r.Endpoint, n.Intent, n.Seq}
	}
	return keys
}

// Ref names a notice at an endpoint.
type Ref struct {
	Intent chain.IntentID `json:"intent"`
	Seq    uint64         `json:"sequence"`
}

func (WasDisabled) fact()     {}
func (WasEnabled) fact()      {}
func (RedeliveryAsked) fact() {}

// Codec names the facts for ever.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, WasDisabled]("webhook.disabled.v1"),
		event.As[Event, WasEnabled]("webhook.enabled.v1"),
		event.As[Event, RedeliveryAsked]("webhook.redelivery_asked.v1"),
	)
}

// Command is a wish about an endpoint, or news of one. It carries its own time.
//
//sumtype:decl
type Command interface{ wish() }

// Disable ends sending to an endpoint, or tells that it has ended.
type Disable WasDisabled

// EnableAgain begins sending to it anew.
type EnableAgain WasEnabled

// SendAgain sends notices again.
type SendAgain RedeliveryAsked

func (Disable) wish()     {}
func (EnableAgain) wish() {}
func (SendAgain) wish()   {}

// RedeliverMax bounds the notices that one wish names.
const RedeliverMax = 1000

// Refusals of wishes.
const (
	// ErrEndpoint: nothing was ever to be told there.
	ErrEndpoint = event.Refusal("unknown-webhook")
	// ErrRedeliver: too many notices are named at once.
	ErrRedeliver = event.Refusal("redelivery-too-large")
)

// Wishes is what the events of one endpoint add up to: that of it which is decided by
// them. How the endpoint stands is an [Endpoint].
type Wishes struct {
	Off Reason // by the last event; Enabled when it is on
}

// Decide answers a command with the facts it adds.
func (w Wishes) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Disable:
		if w.Off == c.Reason {
			return nil, nil
		}
		return []Event{WasDisabled(c)}, nil
	case EnableAgain:
		// Always: what has disabled it by itself may not have been recorded.
		return []Event{WasEnabled(c)}, nil
	case SendAgain:
		if len(c.Notices) > RedeliverMax {
			return nil, ErrRedeliver.Because("%d notices are named; at most %d are taken", len(c.Notices), RedeliverMax)
		}
		return []Event{RedeliveryAsked(c)}, nil
	}
	panic(fmt.Sprintf("notice: unknown command %T", c))
}

// Evolve adds one fact.
func (w Wishes) Evolve(e Event) Wishes {
	switch e := e.(type) {
	case WasDisabled:
		w.Off = e.Reason
	case WasEnabled:
		w.Off = Enabled
	case RedeliveryAsked:
	default:
		panic(fmt.Sprintf("notice: unknown event %T", e))
	}
	return w
}

// StreamPrefix begins the name of every endpoint's stream.
const StreamPrefix = "webhook-"

// Stream names an endpoint's events.
func Stream(id EndpointID) event.Stream { return event.Stream(StreamPrefix + id.String()) }

// ParseEndpointID reads what [EndpointID.String] gave.
func ParseEndpointID(text string) (id EndpointID, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) || hex.EncodeToString(b) != text {
		return id, fmt.Errorf("a webhook's id is %d hex digits in lower case", 2*len(id))
	}
	copy(id[:], b)
	return id, nil
}

// ParseStream reads an endpoint's id off the name that [Stream] gave.
func ParseStream(s event.Stream) (EndpointID, error) {
	digits, ok := strings.CutPrefix(string(s), StreamPrefix)
	id, err := ParseEndpointID(digits)
	if !ok || err != nil {
		return EndpointID{}, fmt.Errorf("stream %q is not a webhook's", s)
	}
	return id, nil
}

// MarshalText is [EndpointID.String].
func (id EndpointID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is [ParseEndpointID].
func (id *EndpointID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseEndpointID(string(text))
	return err
}
