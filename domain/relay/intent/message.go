package intent

import (
	"encoding/json"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Message is a notice with all that a receiver needs to act on it without a look-up: the request,
// and the intent's state right after the notice's event. It follows from the intent's events up to
// that event alone, so it is the same whenever it is made.
type Message struct {
	Notice
	Request Summary
	State   Standing
}

// Summary is a request in a message.
type Summary struct {
	Client    string            `json:"client,omitempty"`
	Key       string            `json:"key"`
	Chain     chain.ID          `json:"chainId"`
	Signer    *chain.Address    `json:"signer,omitempty"` // as requested
	Pool      string            `json:"pool,omitempty"`
	Order     string            `json:"orderingKey,omitempty"`
	NotBefore uint64            `json:"notBefore,omitempty"`
	Deadline  uint64            `json:"deadline,omitempty"`
	Subject   string            `json:"subject,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Calls     []CallSummary     `json:"calls"`
}

// CallSummary is a call in a message. A call with input has DataBytes, and Data or DataHash, or
// neither if the reader may not know the input yet.
type CallSummary struct {
	To        *chain.Address `json:"to,omitempty"` // nil for a contract creation
	Value     Amount         `json:"value"`
	Data      Data           `json:"data,omitempty"`
	DataHash  *chain.Hash    `json:"dataHash,omitempty"` // Keccak-256 of the input
	DataBytes int            `json:"dataBytes,omitempty"`
}

// Standing is an intent's state in a message.
type Standing struct {
	Status Status `json:"status"`
	// Signer, NonceKey and Nonce are the intent's place; nil without a place.
	Signer   *chain.Address  `json:"signer,omitempty"`
	NonceKey *chain.NonceKey `json:"nonceKey,omitempty"`
	Nonce    *uint64         `json:"nonce,omitempty"`
	// Hash is the mined attempt; otherwise the last attempt at the intent's place, or the
	// transaction that ended the intent. Kind is its purpose.
	Hash chain.Hash  `json:"hash,omitzero"`
	Kind AttemptKind `json:"kind,omitempty"`
	Fee  *chain.Fee  `json:"fee,omitempty"` // offered by the attempt; nil if unknown
	// Receipt is the announced receipt of Hash; nil while no block contains it.
	Receipt       *chain.Receipt `json:"receipt,omitempty"`
	Confirmations int            `json:"confirmations"` // number of announced confirming blocks
	// Reason is why the intent failed, or why a completed one should have been stopped.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Bounds of the calls' input in messages, in bytes.
const (
	MessageDataStandard = 2 << 10
	MessageDataMost     = 8 << 10 // a message's body is bounded: see infra/webhook
)

// Viewer is for whom a message is made.
type Viewer int

const (
	Owner Viewer = iota // the intent's client, and its webhooks
	// Others see no input of a call before a block contains the calls: no node may have seen it.
	Others
)

// Story is an intent as messages about it tell it: its state, without inputs of calls above a
// bound. The zero Story is of no intent.
type Story struct {
	state  State
	calls  []CallSummary
	notice Notice
	told   bool // the last event is public
	size   int
}

// After returns the story with one more event. Inputs of calls are kept if all of them together
// have at most most bytes, otherwise only their hashes.
func (s Story) After(id chain.IntentID, e Event, most int) Story {
	if r, is := e.(Requested); is {
		s.calls = callsOf(r.Request.Calls, most)
		r.Request.Calls = nil // they may be large
		e, s.size = r, 2*r.Request.Size()
		for _, c := range s.calls {
			s.size += callSize + len(c.Data)
		}
	}
	s.state = s.state.Evolve(e)
	s.notice, s.told = Tell(id, e)
	return s
}

// callSize is about the memory of a [CallSummary] without its input.
const callSize = 160

// Size is about the number of bytes that the story takes.
func (s Story) Size() int {
	const attempt, block = 240, 56
	return s.size + attempt*len(s.state.Attempts) + block*len(s.state.Told)
}

// Request returns the request without its calls.
func (s Story) Request() Request { return s.state.Requested.Request }

// Message returns the message about the story's last event; false if the event is not public.
func (s Story) Message(v Viewer) (Message, bool) {
	if !s.told {
		return Message{}, false
	}
	return Message{Notice: s.notice, Request: s.summary(v), State: s.standing()}, true
}

func callsOf(calls []Call, most int) []CallSummary {
	total, all := 0, make([]CallSummary, len(calls))
	for _, c := range calls {
		total += len(c.Data)
	}
	for i, c := range calls {
		all[i] = CallSummary{To: c.To, Value: c.Value, DataBytes: len(c.Data)}
		switch {
		case len(c.Data) == 0:
		case total <= most:
			all[i].Data = c.Data
		default:
			hash := chain.Keccak(c.Data)
			all[i].DataHash = &hash
		}
	}
	return all
}

func (s Story) summary(v Viewer) Summary {
	r := s.Request()
	out := Summary{
		Client: r.Client, Key: r.Key, Chain: r.Chain, Signer: r.Signer, Pool: r.Pool, Order: r.Order,
		NotBefore: r.NotBefore, Deadline: r.Deadline, Subject: r.Subject, Metadata: r.Metadata, Calls: s.calls,
	}
	if v != Owner && !s.state.Landed() {
		out.Calls = hidden(out.Calls)
	}
	return out
}

// hidden returns calls without their inputs. A hash would reveal an input that has few possible
// values.
func hidden(calls []CallSummary) []CallSummary {
	bare := make([]CallSummary, len(calls))
	for i, c := range calls {
		bare[i] = CallSummary{To: c.To, Value: c.Value, DataBytes: c.DataBytes}
	}
	return bare
}

// ForOthers returns an owner's message as others may see it.
func (m Message) ForOthers() Message {
	if m.State.Receipt == nil || m.State.Kind == NoOp {
		m.Request.Calls = hidden(m.Request.Calls)
	}
	return m
}

func (s Story) standing() Standing {
	out := Standing{Status: s.state.Status(), Confirmations: len(s.state.Told)}
	if p := s.state.Place; p != nil {
		out.Signer, out.NonceKey, out.Nonce = &p.Signer, &p.NonceKey, &p.Nonce
	}
	switch end := s.state.End; {
	case s.state.Receipt != nil:
		out.Hash, out.Receipt = s.state.Mined, s.state.Receipt
	case end != nil:
		out.Hash = end.Hash
	case s.state.live():
		out.Hash = s.state.Attempts[len(s.state.Attempts)-1].Hash
	}
	if made, known := s.state.attempt(out.Hash); known {
		out.Kind = made.Kind
		if made.Fee != (chain.Fee{}) {
			out.Fee = &made.Fee
		}
	}
	out.Reason, out.Detail = s.state.Stop.Reason, s.state.Stop.Detail
	if end := s.state.End; end != nil {
		out.Reason, out.Detail = end.Reason, end.Detail
		if end.Status == StatusCanceled {
			out.Reason = Withdrawn
		}
	}
	return out
}

// fullEnvelope is a message's JSON form.
type fullEnvelope struct {
	envelope
	Request Summary  `json:"request"`
	State   Standing `json:"state"`
}

func (m Message) MarshalJSON() ([]byte, error) {
	e, err := m.Notice.envelope()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fullEnvelope{e, m.Request, m.State})
}

func (m *Message) UnmarshalJSON(b []byte) error {
	var e fullEnvelope
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	m.Request, m.State = e.Request, e.State
	return m.Notice.open(e.envelope)
}

// Placed is a message with its position in the log.
type Placed struct {
	Position eventlog.Position
	Message
}

func (p Placed) MarshalJSON() ([]byte, error) {
	e, err := p.Notice.envelope()
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Position eventlog.Position `json:"position"`
		fullEnvelope
	}{p.Position, fullEnvelope{e, p.Request, p.State}})
}
