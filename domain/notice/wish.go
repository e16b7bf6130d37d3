package notice

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about an endpoint: an operator's or client's command, or an automatic change.
// Notices and their deliveries are not in the log.
//
//sumtype:decl
type Event interface{ fact() }

// WasDisabled: nothing is sent to the endpoint from now on.
type WasDisabled struct {
	Endpoint EndpointID `json:"endpoint"`
	// Reason is Operator if it was requested; otherwise the automatic reason.
	Reason Reason    `json:"reason"`
	At     time.Time `json:"at"`
}

// WasEnabled: deliveries to the endpoint resume, with its failures cleared.
type WasEnabled struct {
	Endpoint EndpointID `json:"endpoint"`
	At       time.Time  `json:"at"`
}

// RedeliveryAsked: a redelivery of notices was requested.
type RedeliveryAsked struct {
	Endpoint EndpointID `json:"endpoint"`
	// Notices are the requested notices; empty: all dead ones.
	Notices []Ref     `json:"notices,omitempty"`
	At      time.Time `json:"at"`
}

// Keys returns the keys of the requested notices.
func (r RedeliveryAsked) Keys() []Key {
	keys := make([]Key, len(r.Notices))
	for i, n := range r.Notices {
		keys[i] = Key{r.Endpoint, n.Intent, n.Seq}
	}
	return keys
}

// Ref identifies a notice at an endpoint.
type Ref struct {
	Intent chain.IntentID `json:"intent"`
	Seq    uint64         `json:"sequence"`
}

// About returns the endpoint that an event is about.
func About(e Event) EndpointID {
	switch e := e.(type) {
	case WasDisabled:
		return e.Endpoint
	case WasEnabled:
		return e.Endpoint
	case RedeliveryAsked:
		return e.Endpoint
	}
	panic(fmt.Sprintf("notice: unknown event %T", e))
}

func (WasDisabled) fact()     {}
func (WasEnabled) fact()      {}
func (RedeliveryAsked) fact() {}

// Codec maps event types to stored names, which never change.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, WasDisabled]("webhook.disabled.v1"),
		eventlog.As[Event, WasEnabled]("webhook.enabled.v1"),
		eventlog.As[Event, RedeliveryAsked]("webhook.redelivery_asked.v1"),
	)
}

// Command is a request about an endpoint, or an observation of it. It carries its own time.
//
//sumtype:decl
type Command interface{ wish() }

// Disable requests to stop deliveries to an endpoint, or records that they were stopped.
type Disable WasDisabled

// EnableAgain requests to resume deliveries, with the failures cleared.
type EnableAgain WasEnabled

// SendAgain requests a redelivery.
type SendAgain RedeliveryAsked

func (Disable) wish()     {}
func (EnableAgain) wish() {}
func (SendAgain) wish()   {}

// RedeliverMax bounds the notices of one redelivery.
const RedeliverMax = 1000

// Refusals of endpoint commands.
const (
	// ErrEndpoint: the endpoint is unknown.
	ErrEndpoint = eventlog.Refusal("unknown-webhook")
	// ErrRedeliver: the redelivery names too many notices.
	ErrRedeliver = eventlog.Refusal("redelivery-too-large")
)

// Wishes is the result of one endpoint's events, as far as [Wishes.Decide] needs it. The delivery
// state is in [Endpoint].
type Wishes struct {
	Off Reason // by the last event; Enabled if not disabled
}

// Decide returns the events that a command adds.
func (w Wishes) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Disable:
		if w.Off == c.Reason {
			return nil, nil
		}
		return []Event{WasDisabled(c)}, nil
	case EnableAgain:
		// Always recorded: an automatic disabling may be missing from the log.
		return []Event{WasEnabled(c)}, nil
	case SendAgain:
		if len(c.Notices) > RedeliverMax {
			return nil, ErrRedeliver.Because("%d webhook deliveries are named; at most %d are allowed", len(c.Notices), RedeliverMax)
		}
		return []Event{RedeliveryAsked(c)}, nil
	}
	panic(fmt.Sprintf("notice: unknown command %T", c))
}

// Evolve applies one event.
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

// StreamPrefix is the prefix of every endpoint's stream name.
const StreamPrefix = "webhook-"

// Stream returns the name of an endpoint's event stream.
func Stream(id EndpointID) eventlog.Stream { return eventlog.Stream(StreamPrefix + id.String()) }

// ParseEndpointID parses the text of [EndpointID.String].
func ParseEndpointID(text string) (id EndpointID, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) || hex.EncodeToString(b) != text {
		return id, fmt.Errorf("a webhook's id is %d hex digits in lower case", 2*len(id))
	}
	copy(id[:], b)
	return id, nil
}

// ParseStream returns the endpoint's id in a name made by [Stream].
func ParseStream(s eventlog.Stream) (EndpointID, error) {
	digits, ok := strings.CutPrefix(string(s), StreamPrefix)
	id, err := ParseEndpointID(digits)
	if !ok || err != nil {
		return EndpointID{}, fmt.Errorf("stream %q is not a webhook's", s)
	}
	return id, nil
}

// MarshalText returns [EndpointID.String].
func (id EndpointID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText calls [ParseEndpointID].
func (id *EndpointID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseEndpointID(string(text))
	return err
}
