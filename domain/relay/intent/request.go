package intent

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Request is a client's request for calls on a chain. The relay chooses unset fields.
type Request struct {
	// Client is the requesting client as authenticated by the relay, never as claimed by the
	// request. All callers without an API key share the empty client.
	Client string `json:"client,omitempty"`
	// Key is the client's idempotency key: the same key identifies the same request.
	Key string `json:"key"`
	From
	Chain chain.ID `json:"chain"`
	// Calls are carried out all or not at all. More than one call needs a chain with batches,
	// such as Tempo. A plain transaction's to, value and data are one call.
	Calls []Call `json:"calls"`
	Gas   Gas    `json:"gas,omitzero"`
	// NotBefore is the earliest time to give the request a nonce, in Unix seconds; 0: at once.
	NotBefore uint64 `json:"notBefore,omitempty"`
	// Deadline is when the request expires, in Unix seconds; 0: never.
	Deadline uint64 `json:"deadline,omitempty"`
	// Order is the ordering key: a client's intents with the same key land in the order of their
	// requests.
	Order    string      `json:"order,omitempty"`
	NonceKey NoncePolicy `json:"nonceKey,omitzero"`
	// Subject is the client's own customer; limits and budgets may count by it.
	Subject  string            `json:"subject,omitempty"`
	Webhooks []Webhook         `json:"webhooks,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // the client's own, returned unchanged
	// Simulate runs the calls on a node first; a request that would revert is not sent.
	Simulate bool `json:"simulate,omitempty"`
}

// From is the requested signer: one account, or the least busy account of a pool. Exactly one
// field is set.
type From struct {
	Signer *chain.Address `json:"signer,omitempty"`
	Pool   string         `json:"pool,omitempty"`
}

// Call is one call. Without To it creates a contract from Data.
type Call struct {
	To    *chain.Address `json:"to,omitempty"`
	Value Amount         `json:"value,omitzero"`
	Data  Data           `json:"data,omitempty"`
}

// Gas limits the cost of a request.
type Gas struct {
	Limit   uint64  `json:"limit,omitempty"` // units of gas; 0: estimated
	Urgency Urgency `json:"urgency,omitempty"`
	// MaxFee and MaxPriorityFee bound the fee and the tip per unit of gas; 0: no bound.
	MaxFee         Amount `json:"maxFee,omitzero"`
	MaxPriorityFee Amount `json:"maxPriorityFee,omitzero"`
	// FeeToken is the token that pays Tempo's fee. Sponsored lets the relay's fee payer pay it.
	FeeToken  *chain.Address `json:"feeToken,omitempty"`
	Sponsored bool           `json:"sponsored,omitempty"`
}

// Urgency trades speed against price. Empty is [Normal].
type Urgency string

const (
	Slow   Urgency = "slow"
	Normal Urgency = "normal"
	Fast   Urgency = "fast"
)

// NoncePolicy restricts the signer's nonce sequences that the intent may use.
type NoncePolicy struct {
	Mode NonceMode       `json:"mode,omitempty"`
	Key  *chain.NonceKey `json:"key,omitempty"` // set with NonceFixed only
}

// NonceMode is how the nonce key is chosen.
type NonceMode string

const (
	NonceAny      NonceMode = ""         // chosen by the relay
	NonceProtocol NonceMode = "protocol" // 0, the protocol nonce: the only key that Ethereum has
	NonceOrdered  NonceMode = "ordered"  // one key per ordering key, so that a client's ordering groups never wait for each other
	NonceFixed    NonceMode = "fixed"    // the key in Key
)

// Webhook is the target of an intent's notices.
type Webhook = notice.Webhook

// Sealed returns the request with sealed webhooks, as it is recorded.
func Sealed(s notice.Sealer, r Request) Request {
	r.Webhooks = s.Webhooks(r.Webhooks)
	return r
}

// The domains keep the two kinds of digest distinct.
const (
	idDomain     = "watchtower.intent.id.v1"
	digestDomain = "watchtower.intent.request.v1"
)

// ID returns the intent's id: the first 16 bytes of the Keccak-256 of client, signer or pool, and
// key, in the form of [Request.Digest]. Concurrent requests derive the same id and so meet in one
// stream, whose first version only one of them can append.
func ID(client string, from From, key string) chain.IntentID {
	digest := chain.Keccak(form{}.text("domain", idDomain).text("client", client).from(from).text("key", key))
	return chain.IntentID(digest[:16])
}

// ID returns the id of the request's intent.
func (r Request) ID() chain.IntentID { return ID(r.Client, r.From, r.Key) }

// Digest identifies the request's content: equal requests have equal digests, however they were
// written. It is the Keccak-256 of the set fields in a fixed order. Each field is a name and a
// value, each after its length as big-endian uint32. Numbers are big-endian and of fixed length.
func (r Request) Digest() chain.Hash {
	urgency := r.Gas.Urgency
	if urgency == Normal {
		urgency = "" // Normal is the default
	}
	f := form{}.text("domain", digestDomain).text("client", r.Client).text("key", r.Key).from(r.From).
		number("chain", uint64(r.Chain))
	for _, c := range r.Calls {
		f = f.put("call", form{}.address("to", c.To).amount("value", c.Value).bytes("data", c.Data))
	}
	f = f.number("gas.limit", r.Gas.Limit).text("gas.urgency", string(urgency)).
		amount("gas.maxFee", r.Gas.MaxFee).amount("gas.maxPriorityFee", r.Gas.MaxPriorityFee).
		address("gas.feeToken", r.Gas.FeeToken).flag("gas.sponsored", r.Gas.Sponsored).
		number("notBefore", r.NotBefore).number("deadline", r.Deadline).text("order", r.Order).text("nonceKey.mode", string(r.NonceKey.Mode))
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

// form is a sequence of encoded fields. Unset fields are left out, so that a field added later
// changes no existing digest.
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

// StreamPrefix is the prefix of every intent's stream name.
const StreamPrefix = "intent-"

// Stream returns the name of an intent's event stream.
func Stream(id chain.IntentID) eventlog.Stream { return eventlog.Stream(StreamPrefix + id.String()) }

// ParseStream returns the intent's id in a name made by [Stream].
func ParseStream(s eventlog.Stream) (chain.IntentID, error) {
	digits, ok := strings.CutPrefix(string(s), StreamPrefix)
	id, err := chain.ParseIntentID(digits)
	if !ok || err != nil || Stream(id) != s {
		return chain.IntentID{}, fmt.Errorf("stream %q is not an intent's", s)
	}
	return id, nil
}
