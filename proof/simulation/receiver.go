package simulation

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

// receiver is a webhook endpoint with its owner and its received deliveries.
type receiver struct {
	hooks  *hooks
	number int
	host   string
	url    string
	id     notice.EndpointID
	name   atomic.Int32 // address of its name: one of the constants below

	illness string
	ill     time.Duration // end of the illness
	gone    bool          // permanently: its owner gave it up

	consumer  *intents.Consumer
	owed      map[notice.Ref]time.Time // missing deliveries, with the times when they were owed
	forgotten map[notice.Ref]bool      // of these, deliveries received once and lost
	failed    map[notice.Ref]bool      // deliveries with a failed attempt
	dead      map[notice.Ref]bool      // dead deliveries shown to its owner
	retold    map[notice.Ref]bool      // known deliveries that are repeated since the queue was lost
	again     time.Time                // time of the last repetition
}

// The addresses of a receiver's name.
const (
	outside int32 = iota // a public Internet address
	inside               // the metadata service with a cloud machine's credentials
	nowhere
)

// Events that must happen in some world.
const (
	hookAgain       = "webhook: told again"
	hookRetried     = "webhook: told after a failure"
	hookUnknown     = "webhook: nobody knows whether it came"
	hookGone        = "webhook: gone for a while"
	hookEnabled     = "webhook: enabled again"
	hookRedelivered = "webhook: got a dead letter"
	hookRecalled    = "webhook: got a forgotten delivery"
	hookTried       = "webhook: tried"
)

// Illnesses.
const (
	answers500   = "answers 500"
	answers503   = "answers 503 and asks for a pause"
	answers429   = "answers 429"
	answers410   = "answers 410"
	redirects    = "redirects to the inside"
	hangs        = "never answers"
	cuts         = "takes and hangs up"
	floods       = "answers without end"
	drips        = "begins an answer"
	namedInside  = "has a name that means the inside"
	namedNowhere = "has a name that means nothing"
)

func illnesses() []string {
	return []string{answers500, answers500, answers503, answers429, answers410, redirects, hangs, cuts, floods, drips, namedInside, namedNowhere}
}

// illness draws an illness. The first of a world rotates over the seeds.
func (h *hooks) illness() string {
	all := illnesses()
	n := uint64(h.rand.IntN(len(all))) //nolint:gosec // small
	if h.ill++; h.ill == 1 {
		n = h.world.plan.Seed % uint64(len(all))
	}
	return all[n]
}

func newReceiver(h *hooks, i int) *receiver {
	host := fmt.Sprintf("hook%d.example.com", i)
	r := &receiver{
		hooks: h, number: i, host: host, url: fmt.Sprintf("https://%s/%x?token=%x", host, h.drawn("path", i), h.drawn("token", i)),
		owed: map[notice.Ref]time.Time{}, forgotten: map[notice.Ref]bool{}, failed: map[notice.Ref]bool{}, dead: map[notice.Ref]bool{},
	}
	r.consumer = &intents.Consumer{Name: host, InOrder: true, GivenUp: r.givenUp}
	r.id = h.caller.Endpoint(h.world.tenants.names[victim], r.url)
	return r
}

// well reports whether the receiver never falls ill.
func (r *receiver) well() bool { return r.number == 0 }

// leaves reports whether the receiver disappears at some time.
func (r *receiver) leaves() bool { return r.number == 3 }

// addresses are the present addresses of its name.
func (r *receiver) addresses() ([]netip.Addr, error) {
	switch r.name.Load() {
	case inside:
		return []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 254})}, nil
	case nowhere:
		return nil, errors.New("simulated resolver: no such name")
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, byte(34 + r.number)})}, nil //nolint:gosec // small
}

// owe records a delivery owed to the receiver.
func (r *receiver) owe(n notice.Ref) { r.owed[n] = time.Now() }

// givenUp reports whether a delivery is no longer attempted: its owner has seen that it is dead,
// or no longer requests a delivery that was made and lost.
func (r *receiver) givenUp(id chain.IntentID, sequence uint64) bool {
	ref := notice.Ref{Intent: id, Seq: sequence}
	return r.gone && (r.dead[ref] || r.forgotten[ref])
}

// fallIll makes the receiver misbehave for a while.
func (r *receiver) fallIll(illness string, d time.Duration) {
	now := r.hooks.world.agenda.now()
	if r.ill > now || r.gone {
		return
	}
	r.hooks.world.faults["webhook: "+illness]++
	r.illness, r.ill = illness, now+d
	r.name.Store(map[string]int32{namedInside: inside, namedNowhere: nowhere}[illness])
	r.hooks.world.agenda.after(d, "receiver is well", r.recover)
}

func (r *receiver) recover() {
	r.illness, r.ill = "", 0
	r.name.Store(outside)
}

// forget makes the receiver lose its deliveries. Its owner later requests them again.
func (r *receiver) forget() {
	if r.gone {
		return
	}
	r.hooks.world.faults["webhook: receiver forgets"]++
	known := r.consumer
	r.consumer = &intents.Consumer{Name: r.host, GivenUp: r.givenUp}
	for _, n := range r.known(known) {
		r.owed[n], r.forgotten[n] = time.Time{}, true
	}
}

// startOver expects a repetition of all known deliveries, since the queue is lost.
func (r *receiver) startOver() {
	r.retold = map[notice.Ref]bool{}
	for _, n := range r.known(r.consumer) {
		r.retold[n] = true
	}
}

// known lists the deliveries that a consumer has received.
func (r *receiver) known(c *intents.Consumer) (all []notice.Ref) {
	for _, id := range slices.SortedFunc(maps.Keys(r.hooks.of), func(a, b chain.IntentID) int { return bytes.Compare(a[:], b[:]) }) {
		for seq := uint64(1); seq <= r.hooks.last[id]; seq++ {
			if c.Came(id, seq) {
				all = append(all, notice.Ref{Intent: id, Seq: seq})
			}
		}
	}
	return all
}

// serve returns the receiver's answer to a replica; nil without an error means no answer ever.
func (r *receiver) serve(by *replica, req *http.Request, body []byte) (*http.Response, error) {
	some := r.hooks.world.some
	if r.number >= hostileFirst {
		return r.serveHostile(by, req, body)
	}
	if r.gone {
		return respond(req, http.StatusGone, "", nil), nil
	}
	switch r.illness {
	case answers500:
		return respond(req, http.StatusInternalServerError, "<html>", nil), nil
	case answers503:
		return respond(req, http.StatusServiceUnavailable, "", http.Header{"Retry-After": {strconv.Itoa(1 + r.hooks.rand.IntN(20))}}), nil
	case answers429:
		return respond(req, http.StatusTooManyRequests, "", nil), nil
	case answers410:
		some[hookGone]++
		return respond(req, http.StatusGone, "", nil), nil
	case redirects:
		return respond(req, http.StatusTemporaryRedirect, "", http.Header{"Location": {"http://169.254.169.254/latest/meta-data/"}}), nil
	case hangs:
		if r.hooks.rand.IntN(2) == 0 {
			return nil, nil
		}
		r.take(req, body)
		return nil, nil
	case cuts:
		r.take(req, body)
		return nil, errLink
	}
	r.take(req, body)
	answer := respond(req, http.StatusOK, "{}", nil)
	switch r.illness {
	case floods:
		answer.Body = &flood{replica: by}
	case drips:
		answer.Body = io.NopCloser(drip{req})
	}
	return answer, nil
}

// take judges a delivery.
func (r *receiver) take(req *http.Request, body []byte) {
	w := r.hooks.world
	id := req.Header.Get(webhook.HeaderID)
	if req.Method != http.MethodPost || req.URL.String() != r.url || req.Header.Get("Content-Type") != "application/json" {
		w.judge.fail("P22", "%s was asked %s %s of %s", r.host, req.Method, req.URL.Host, req.Header.Get("Content-Type"))
	}
	write(r.hooks.secrets.bodies, body)
	r.verify(req.Header, id, body)
	if strings.HasPrefix(id, "try_") {
		w.some[hookTried]++
		return
	}
	var n intent.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		w.judge.fail("P22", "%s was told %s: %v", r.host, body, err)
		return
	}
	if n.ID() != id {
		w.judge.fail("P22", "%s was told %s under the id %s", r.host, n.ID(), id)
	}
	ref := notice.Ref{Intent: n.Intent, Seq: n.Sequence}
	if r.consumer.Came(n.Intent, n.Sequence) {
		w.some[hookAgain]++
	}
	if r.retold[ref] {
		delete(r.retold, ref)
		r.again = time.Now()
	}
	if r.failed[ref] {
		w.some[hookRetried]++
	}
	if r.forgotten[ref] {
		w.some[hookRecalled]++
	}
	if r.dead[ref] {
		w.some[hookRedelivered]++
	}
	w.some["webhook: "+kindOf(n.Said)]++
	delete(r.owed, ref)
	delete(r.forgotten, ref)
	w.judge.tell(r.consumer.Shown(n))
}

// kindOf names the kind of an event.
func kindOf(said intent.Said) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", said), "intent.")
	if confirmed, is := said.(intent.TxConfirmed); is && confirmed.NewFork {
		name += " of a new fork"
	}
	return name
}

// signedWithin is the maximum difference of the signed time from now. Source: Standard Webhooks
// 1.0.0 leaves it to receivers; its libraries tolerate five minutes.
const signedWithin = 5 * time.Minute

// verify judges that a message is signed with all of the endpoint's secrets, the newest first.
// It is implemented independently, like a receiver's.
func (r *receiver) verify(header http.Header, id string, body []byte) {
	stamp := header.Get(webhook.HeaderTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > signedWithin {
		r.hooks.world.judge.fail("P22", "%s was told %s at %q", r.host, id, stamp)
	}
	var want []string
	for _, secret := range r.secrets() {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			panic(err) // it is a secret's own text
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body) //nolint:errcheck // a hash never fails
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if got := header.Get(webhook.HeaderSignature); got != strings.Join(want, " ") {
		r.hooks.world.judge.fail("P22", "%s was told %s, signed %s", r.host, id, got)
	}
}

// secrets are the endpoint's secrets, the newest first.
func (r *receiver) secrets() (all []string) {
	for _, s := range r.hooks.caller.Secrets(r.id) {
		all = append(all, s.Reveal())
	}
	return all
}
