package watchtower

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Assigned is a milestone of intents alone: the intent has a nonce. [Submitted], [Mined] and [Completed] are
// those of transactions too: of any attempt, of one that is no no-op, and of the block of that one.
const Assigned Milestone = "assigned"

// Relay calls one service that signs and delivers intents. Only URL is required. Several
// goroutines may use a Relay; its fields must not change meanwhile.
//
// Every request is repeated after a lost answer or a temporary failure: an intent's key makes it
// one intent.
type Relay struct {
	URL  string // of the relay's API, such as https://relay.example
	Key  string // an API key, if the service requires one
	HTTP *http.Client
	// Tries is the maximum number of tries for one request; 0 means [DefaultTries]. It does not
	// limit [Relay.Follow].
	Tries int
}

func (r *Relay) caller() caller { return caller{url: r.URL, key: r.Key, http: r.HTTP, most: r.Tries} }

// Create creates an intent, or finds the intent that the same request created before
// (AlreadyKnown). The intent is durable.
func (r *Relay) Create(ctx context.Context, request IntentRequest) (Intent, error) {
	return r.CreateAndWait(ctx, request, "", 0)
}

// CreateAndWait is [Relay.Create], and waits until the intent has reached the milestone or can no
// longer reach it, for at most 55 seconds; 0 means 20.
func (r *Relay) CreateAndWait(ctx context.Context, wish IntentRequest, m Milestone, timeout time.Duration) (Intent, error) {
	var created Intent
	q, err := post("/v1/intents", waiting(m, timeout), wish)
	if err != nil {
		return created, err
	}
	q.wait = waitOf(m, timeout)
	err = r.caller().call(ctx, q, &created)
	return created, err
}

// IntentResult is the result for one intent of a list: Intent if OK, and Problem otherwise.
type IntentResult struct {
	OK      bool     `json:"ok"`
	Intent  *Intent  `json:"intent,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// CreateAll creates intents. Results are in the order of the requests. Intents with a temporary
// problem are requested again; an intent that still fails in the end has its problem in its
// result. With an error, which concerns the whole request, there are no results.
func (r *Relay) CreateAll(ctx context.Context, requests ...IntentRequest) ([]IntentResult, error) {
	return sendItems(ctx, r.caller().tries(), requests, func(some []IntentRequest) ([]IntentResult, error) {
		var answer struct{ Results []IntentResult }
		err := r.caller().posted(ctx, "/v1/intents", nil, some, &answer)
		return answer.Results, err
	}, func(r IntentResult) *Problem { return r.Problem })
}

// Get returns one intent.
func (r *Relay) Get(ctx context.Context, id string) (Intent, error) {
	var found Intent
	err := r.caller().call(ctx, get(intentPath(id), nil), &found)
	return found, err
}

func intentPath(id string) string { return "/v1/intents/" + url.PathEscape(id) }

// Wait returns when an intent has reached the milestone, or when, as things are, it will not:
// check its Status. It retries temporary failures, such as a restart of the relay, as every call
// does. If ctx ends first, Wait returns its error with the intent as last seen.
func (r *Relay) Wait(ctx context.Context, id string, m Milestone) (Intent, error) {
	return await(ctx, r.caller(), intentPath(id), cmp.Or(m, Completed), func(i Intent) *Waited { return i.Waited })
}

// IntentFilters restrict a list; the zero value lists all of the client's intents.
type IntentFilters struct {
	Client   string // another client's intents need the scope audit or admin
	ChainID  ChainID
	Signer   string
	Pool     string
	Key      string // with Signer or Pool, the intent is found as soon as it was accepted
	Hash     string // of any attempt
	Subject  string
	Statuses []IntentStatus // any of these

	Target   string  // of any of the calls
	Selector string  // the first four bytes of the data of any of the calls
	Metadata string  // an entry: its name, "=" and its value
	Nonce    *uint64 // with Signer
	NonceKey string  // of Nonce
	Since    int64   // requested at this time or later; 0: at any time
	Until    int64   // requested in this second or earlier; 0: at any time
}

func (f IntentFilters) query() url.Values {
	query := url.Values{"limit": {"200"}}
	for name, value := range map[string]string{
		"client": f.Client, "chainId": string(f.ChainID), "signer": f.Signer, "pool": f.Pool, "key": f.Key, "hash": f.Hash, "subject": f.Subject,
		"target": f.Target, "selector": f.Selector, "metadata": f.Metadata, "nonceKey": f.NonceKey,
	} {
		query = with(query, name, value)
	}
	if f.Nonce != nil {
		query.Set("nonce", strconv.FormatUint(*f.Nonce, 10))
	}
	for name, at := range map[string]int64{"since": f.Since, "until": f.Until} {
		if at != 0 {
			query.Set(name, strconv.FormatInt(at, 10))
		}
	}
	for _, s := range f.Statuses {
		query.Add("status", string(s))
	}
	return query
}

// List yields intents, newest first, page by page. An error is the last value that it yields.
func (r *Relay) List(ctx context.Context, f IntentFilters) iter.Seq2[Intent, error] {
	return pages(f.query(), func(query url.Values) ([]Intent, url.Values, error) {
		var page struct {
			Intents []Intent
			cursor
		}
		err := r.caller().call(ctx, get("/v1/intents", query), &page)
		return page.Intents, page.next(query), err
	})
}

// Find returns the intent of a key that was requested for a signer or a pool: f names the chain,
// the key, and one of the two. found is false if there is none.
func (r *Relay) Find(ctx context.Context, f IntentFilters) (one Intent, found bool, err error) {
	for one, err := range r.List(ctx, f) {
		return one, err == nil, err
	}
	return Intent{}, false, nil
}

// IntentEvent is a public event of an intent, in the form of a webhook delivery.
type IntentEvent struct {
	Intent   string          `json:"intent"`
	Sequence uint64          `json:"sequence"` // of the intent's events, from 1 without a gap
	Type     string          `json:"type"`     // such as TxConfirmed
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data"`
	Position uint64          `json:"position,omitempty"` // in the log; only in events of [Relay.Follow]

	// What a receiver needs to act on the event without a look-up: in webhook deliveries and in
	// events of [Relay.Follow], not in those of [Relay.Events].
	Request *MessageRequest `json:"request,omitempty"`
	State   *MessageState   `json:"state,omitempty"`
}

// Events yields the events of one intent, by rising sequence. An error is the last value that it
// yields.
func (r *Relay) Events(ctx context.Context, id string) iter.Seq2[IntentEvent, error] {
	return pages(after(0), func(query url.Values) (events []IntentEvent, next url.Values, err error) {
		var page struct {
			Events  []IntentEvent
			HasMore bool
		}
		err = r.caller().call(ctx, get(intentPath(id)+"/events", query), &page)
		if n := len(page.Events); n > 0 && page.HasMore {
			next = after(page.Events[n-1].Sequence)
		}
		return page.Events, next, err
	})
}

// IntentEventFilter selects events of intents. The zero value follows all of the client's
// intents from now on.
type IntentEventFilter struct {
	// After is the position after which events are wanted: the position of the last handled
	// event, or 0 for all events. Nil starts at the end of the log.
	After  *uint64
	Intent string // only this intent's events
	Client string // another client's intents need the scope audit or admin
	// Until is the last position that is wanted. UntilHead stops at the end of the log as of
	// the start of the stream. Without either, the stream never ends.
	Until     *uint64
	UntilHead bool
}

func (f IntentEventFilter) query(at *uint64) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"intent": f.Intent, "client": f.Client} {
		query = with(query, name, value)
	}
	return between(query, at, f.Until, f.UntilHead)
}

// Follow yields the events of the client's intents as they are recorded. It ends after all
// requested events, when the service refuses, or when ctx ends; then the error is the last value
// that it yields. After a lost connection it resumes where it was, without missing or repeating
// events.
func (r *Relay) Follow(ctx context.Context, f IntentEventFilter) iter.Seq2[IntentEvent, error] {
	return follow(ctx, r.caller(), f.After, f.query, func(line []byte) (e IntentEvent, isEvent bool, err error) {
		err = json.Unmarshal(line, &e)
		return e, e.Type != "", err // a mark has no type
	})
}

// Cancel cancels an intent; reason may be empty. Once the intent is signed, a no-op competes for
// its nonce: Outcome shows which of the two has landed.
func (r *Relay) Cancel(ctx context.Context, id, reason string) (Intent, error) {
	var canceled Intent
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	err := r.caller().posted(ctx, intentPath(id)+"/cancel", nil, body, &canceled)
	return canceled, err
}

// SpeedUp raises the fee of an intent's next attempts, in decimal wei per gas: at least a tenth
// above the fee of the previous speed-up.
func (r *Relay) SpeedUp(ctx context.Context, id, feePerGas string) (Intent, error) {
	var raised Intent
	err := r.caller().posted(ctx, intentPath(id)+"/speed-up", nil, map[string]string{"feePerGas": feePerGas}, &raised)
	return raised, err
}

// Webhooks returns the calls about the client's webhooks.
func (r *Relay) Webhooks() Webhooks { return Webhooks{r.caller()} }

// Contract returns the relay's OpenAPI document, as YAML.
func (r *Relay) Contract(ctx context.Context) (string, error) {
	return r.caller().text(ctx, "/openapi.yaml")
}

// ContractJSON returns the relay's OpenAPI document, as JSON.
func (r *Relay) ContractJSON(ctx context.Context) (string, error) {
	return r.caller().text(ctx, "/openapi.json")
}

// Docs returns the relay's OpenAPI document, as a web page.
func (r *Relay) Docs(ctx context.Context) (string, error) { return r.caller().page(ctx, "/docs") }

// Problem explains a code of a problem.
func (r *Relay) Problem(ctx context.Context, code string) (ProblemKind, error) {
	return r.caller().problem(ctx, code)
}

// between adds the positions after and until which events are wanted.
func between(query url.Values, at, until *uint64, head bool) url.Values {
	switch {
	case head:
		query.Set("until", "head")
	case until != nil:
		query.Set("until", strconv.FormatUint(*until, 10))
	}
	if at != nil {
		query.Set("after", strconv.FormatUint(*at, 10))
	}
	return query
}
