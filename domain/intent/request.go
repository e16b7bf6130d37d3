package intent

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Request is what a client wants done. Unset fields leave the choice to the relay.
type Request struct {
	// Client is who asks, as the relay knows it; never what a request says of itself.
	// All who need no key to ask are one client, which is empty.
	Client string `json:"client,omitempty"`
	// Key is the client's own name for the wish. The same one again is the same wish.
	Key string `json:"key"`
	From
	Chain chain.ID `json:"chain"`
	// Calls are carried out all or not at all. Several need a chain that has batches,
	// as Tempo does; to, value and data of a plain transaction are one call.
	Calls []Call `json:"calls"`
	Gas   Gas    `json:"gas,omitzero"`
	// Deadline is when the wish is void, in Unix seconds; 0 never.
	Deadline uint64 `json:"deadline,omitempty"`
	// Order names a row of wishes of the client that land in the order of asking.
	Order    string      `json:"order,omitempty"`
	NonceKey NoncePolicy `json:"nonceKey,omitzero"`
	// Subject is whom the client does it for: limits and budgets may count by it.
	Subject  string            `json:"subject,omitempty"`
	Webhooks []Webhook         `json:"webhooks,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // the client's own, given back as it is
	// Simulate has the calls tried on a node first: what would revert is not sent.
	Simulate bool `json:"simulate,omitempty"`
}

// From is who is to sign: one account, or whichever of a pool has least to do.
// Exactly one is set.
type From struct {
	Signer *chain.Address `json:"signer,omitempty"`
	Pool   string         `json:"pool,omitempty"`
}

// Call is one call. Without To it makes a contract of the data.
type Call struct {
	To    *chain.Address `json:"to,omitempty"`
	Value Amount         `json:"value,omitzero"`
	Data  Data           `json:"data,omitempty"`
}

// Gas is what may be spent on it.
type Gas struct {
	Limit   uint64  `json:"limit,omitempty"` // units of gas; 0 is estimated
	Urgency Urgency `json:"urgency,omitempty"`
	// Ceilings of what one unit of gas may cost, of which the second is the tip's.
	MaxFee         Amount `json:"maxFee,omitzero"`
	MaxPriorityFee Amount `json:"maxPriorityFee,omitzero"`
	// FeeToken is what Tempo's fee is paid in, and Sponsored has the relay's fee payer
	// pay it.
	FeeToken  *chain.Address `json:"feeToken,omitempty"`
	Sponsored bool           `json:"sponsored,omitempty"`
}

// Urgency says how soon it should be mined, at what price. Empty is [Normal].
type Urgency string

const (
	Slow   Urgency = "slow"
	Normal Urgency = "normal"
	Fast   Urgency = "fast"
)

// NoncePolicy says in which of the signer's sequences of nonces it may stand.
type NoncePolicy struct {
	Mode NonceMode       `json:"mode,omitempty"`
	Key  *chain.NonceKey `json:"key,omitempty"` // of NonceFixed, and of no other
}

// NonceMode is how the nonce key is chosen.
type NonceMode string

const (
	NonceAny      NonceMode = ""         // by the relay
	NonceProtocol NonceMode = "protocol" // 0, the account's own: the only one that Ethereum has
	NonceOrdered  NonceMode = "ordered"  // one for each ordering key, so that the rows of a client never wait for one another
	NonceFixed    NonceMode = "fixed"    // the one given
)

// Webhook is where news of the intent goes. Secrets are the relay's settings.
type Webhook struct {
	// URL is as a client gives it, or, where it is recorded, as a [Sealer] has sealed it.
	URL string `json:"url"`
}

// The domains keep one digest from being taken for another.
const (
	idDomain     = "watchtower.intent.id.v1"
	digestDomain = "watchtower.intent.request.v1"
)

// ID is the intent of a client's wish: the first 16 bytes of the Keccak-256 of client,
// signer or pool, and key, in the form of [Request.Digest]. Everybody derives the same,
// so that concurrent requests meet in one stream, whose first version only one can append.
func ID(client string, from From, key string) chain.IntentID {
	digest := chain.Keccak(form{}.text("domain", idDomain).text("client", client).from(from).text("key", key))
	return chain.IntentID(digest[:16])
}

// ID is the intent that the request is about.
func (r Request) ID() chain.IntentID { return ID(r.Client, r.From, r.Key) }

// Digest tells requests apart: two that ask for the same have the same one, however
// they were written. It is the Keccak-256 of the fields that are set, in a fixed order,
// each a name and a value that are preceded by their lengths as big-endian uint32.
// Numbers are big-endian and of fixed length.
func (r Request) Digest() chain.Hash {
	urgency := r.Gas.Urgency
	if urgency == Normal {
		urgency = "" // which is the same
	}
	f := form{}.text("domain", digestDomain).text("client", r.Client).text("key", r.Key).from(r.From).
		number("chain", uint64(r.Chain))
	for _, c := range r.Calls {
		f = f.put("call", form{}.address("to", c.To).amount("value", c.Value).bytes("data", c.Data))
	}
	f = f.number("gas.limit", r.Gas.Limit).text("gas.urgency", string(urgency)).
		amount("gas.maxFee", r.Gas.MaxFee).amount("gas.maxPriorityFee", r.Gas.MaxPriorityFee).
		address("gas.feeToken", r.Gas.FeeToken).flag("gas.sponsored", r.Gas.Sponsored).
		number("deadline", r.Deadline).text("order", r.Order).text("nonceKey.mode", string(r.NonceKey.Mode))
	if r.NonceKey.Key != nil {
		f = f.put("nonceKey.key", r.NonceKey.Key[:])
	}
	f = f.text("subject", r.Subject)
	for _, w := range r.Webhooks {
		f = f.put("webhook", form{}.text("url", w.URL))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		f = f.put("metadata", form{}.put("name", []byte(name)).put("value", []byte(r.Metadata[name])))
	}
	return chain.Keccak(f.flag("simulate", r.Simulate))
}

// form is fields one after the other. What is not set leaves no trace, so that a field
// that is added one day changes no digest of before.
type form []byte

func (f form) put(name string, value []byte) form {
	f = append(binary.BigEndian.AppendUint32(f, uint32(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(f, uint32(len(value))), value...)
}

func (f form) bytes(name string, b []byte) form {
	if len(b) == 0 {
		return f
	}
	return f.put(name, b)
}

func (f form) text(name, s string) form { return f.bytes(name, []byte(s)) }

func (f form) number(name string, n uint64) form {
	if n == 0 {
		return f
	}
	return f.put(name, binary.BigEndian.AppendUint64(nil, n))
}

func (f form) amount(name string, a Amount) form {
	if a.IsZero() {
		return f
	}
	word := a.Int().Bytes32()
	return f.put(name, word[:])
}

func (f form) address(name string, a *chain.Address) form {
	if a == nil {
		return f
	}
	return f.put(name, a[:])
}

func (f form) flag(name string, set bool) form {
	if !set {
		return f
	}
	return f.put(name, []byte{1})
}

func (f form) from(from From) form { return f.address("signer", from.Signer).text("pool", from.Pool) }

// StreamPrefix begins the name of every intent's stream.
const StreamPrefix = "intent-"

// Stream names an intent's events.
func Stream(id chain.IntentID) event.Stream { return event.Stream(StreamPrefix + id.String()) }

// ParseStream reads an intent's id off the name that [Stream] gave.
func ParseStream(s event.Stream) (chain.IntentID, error) {
	digits, ok := strings.CutPrefix(string(s), StreamPrefix)
	id, err := chain.ParseIntentID(digits)
	if !ok || err != nil || Stream(id) != s {
		return chain.IntentID{}, fmt.Errorf("stream %q is not an intent's", s)
	}
	return id, nil
}
