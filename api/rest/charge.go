package rest

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Rates bound how often clients may send requests. They hold per process: each replica allows
// the full rate.
type Rates struct {
	Address Rate // for requests without a valid key
	Key     Rate // for a key without a rate of its own
	// Clients is the number of clients remembered. 0 means [RateClients].
	Clients int
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
}

// RateClients is the default number of clients remembered.
const RateClients = 1 << 16

// A payer is the client that a request is charged to, its rate, and the rate's name in headers.
type payer struct {
	client client
	rate   Rate
	name   string
}

// lookUps is the payer's second bucket, with the same rate, for look-ups of owners. No header
// shows its rest, which depends on the owners that were looked up for other clients before.
func (p payer) lookUps() client {
	c := p.client
	c.lookUps = true
	return c
}

// holder is the payer who has a key.
func (a *api) holder(key access.Key) payer {
	rate := a.Rates.Key
	if key.Rate != nil {
		rate = Rate(*key.Rate)
	}
	return payer{client: client{key: key.ID}, rate: rate, name: "key"}
}

// charge takes n requests from the payer's rate, or refuses the request.
func (a *api) charge(w http.ResponseWriter, on *exchange, n int) error {
	p := on.payer
	if p.rate.PerSecond == 0 || n == 0 {
		return nil
	}
	if on.paid += n; on.paid > p.rate.Burst {
		return ErrBatchTooLarge.Because("%d at once exceed the rate limit's burst, %d", on.paid, p.rate.Burst)
	}
	q := a.limiter.take(a.Now(), p.client, p.rate, n)
	p.tell(w, q)
	if q.wait > 0 {
		w.Header()["Retry-After"] = []string{strconv.Itoa(seconds(q.wait))}
		return ErrRateLimited.Because("at most %d/s, and %d at once", p.rate.PerSecond, p.rate.Burst)
	}
	return nil
}

// chargeUpTo brings the total charge for a request to n. Earlier charges count.
func (a *api) chargeUpTo(w http.ResponseWriter, on *exchange, n int) error {
	return a.charge(w, on, max(n-on.paid, 0))
}

// affords charges n more if the client can pay now, and reports whether it did.
func (on *exchange) affords(w http.ResponseWriter, n int) bool {
	p := on.payer
	if p.rate.PerSecond == 0 {
		return true
	}
	if on.paid+n > p.rate.Burst {
		return false
	}
	q := on.api.limiter.take(on.api.Now(), p.client, p.rate, n)
	if q.wait > 0 {
		return false
	}
	on.paid += n
	p.tell(w, q)
	return true
}

// tell puts the client's rate and the rest of its quota into an answer's headers.
func (p payer) tell(w http.ResponseWriter, q quota) {
	header := w.Header()
	header["Ratelimit-Policy"] = []string{policyField(p)}
	header["Ratelimit"] = []string{quotaField(p, q)}
}

// bodyUnit is the number of bytes of a body that count as one request. Reading, hashing and
// decoding a body of 1 MiB costs as much as 64 small requests.
const bodyUnit = 16 << 10

// chargeBody charges for the bytes of a body before it is decoded. The items of a batch are
// charged as well, and the larger of the two counts. A body never counts as more than the
// client's burst, so no rate forbids a body of the allowed size for ever.
func (a *api) chargeBody(w http.ResponseWriter, on *exchange, bytes int) error {
	return a.chargeUpTo(w, on, min((bytes+bodyUnit-1)/bodyUnit, on.payer.rate.Burst))
}

// chargeRead charges for more bytes of the client's own that a request has read, after the fact: how
// many they are is known only then. They cost as much as the bytes of a body.
func (on *exchange) chargeRead(w http.ResponseWriter, bytes int) {
	on.read += bytes
	on.chargeAfter(w, on.readUnits(on.read))
}

// readUnits returns the charge for bytes that were read or are sent: at most the client's burst.
func (on *exchange) readUnits(bytes int) int {
	return min((bytes+bodyUnit-1)/bodyUnit, on.payer.rate.Burst)
}

// chargeAfter brings the total charge for a request to n, after the work. The client's next request
// pays first for units that its bucket does not have.
func (on *exchange) chargeAfter(w http.ResponseWriter, n int) {
	p := on.payer
	if p.rate.PerSecond == 0 {
		return
	}
	if n -= on.paid; n > 0 {
		on.paid += n
		p.tell(w, on.api.limiter.overdraw(on.api.Now(), p.client, p.rate, n))
	}
}

// Limit is a limit, other than the API's own rate limit, that refused all or part of a request.
type Limit struct {
	Name string // in RateLimit headers; empty if the limit does not count requests
	Rate Rate
	Left int           // requests that may follow at once
	Wait time.Duration // until the client may retry
}

// Limited adds a limit that was reached to the answer's headers.
func (r Request) Limited(l Limit) {
	header := r.w.Header()
	header["Retry-After"] = []string{strconv.Itoa(seconds(l.Wait))}
	if l.Name == "" {
		return
	}
	p := payer{rate: l.Rate, name: l.Name}
	add := func(name, field string) { // appends to a list field (RFC 9651)
		header[name] = []string{strings.Join(append(header[name], field), ", ")}
	}
	add("Ratelimit-Policy", policyField(p))
	add("Ratelimit", quotaField(p, quota{left: l.Left, wait: l.Wait}))
}

// policyField and quotaField format the two fields of draft-ietf-httpapi-ratelimit-headers-11.
// The policy has the quota and its window. The quota has the requests left, and the seconds
// until it is full again, or until the refused request may be retried.
func policyField(p payer) string {
	b := make([]byte, 0, 48)
	b = append(append(append(b, '"'), p.name...), `";q=`...)
	b = strconv.AppendInt(b, int64(p.rate.Burst), 10)
	b = strconv.AppendInt(append(b, ";w="...), int64(seconds(p.rate.window())), 10)
	return string(b)
}

func quotaField(p payer, q quota) string {
	until := q.full
	if q.wait > 0 {
		until = q.wait
	}
	b := make([]byte, 0, 48)
	b = append(append(append(b, '"'), p.name...), `";r=`...)
	b = strconv.AppendInt(b, int64(q.left), 10)
	b = strconv.AppendInt(append(b, ";t="...), int64(seconds(until)), 10)
	return string(b)
}

// seconds rounds up, so a client that waits that long has waited long enough.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
