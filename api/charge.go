package api

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Rates bound how often clients may ask. They hold for one process: of several
// replicas each allows as much.
type Rates struct {
	Address Rate // of requests without a good key
	Key     Rate // of a key that has no rate of its own
	// Clients is how many clients are remembered. 0 is [RateClients].
	Clients int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
}

// RateClients is how many clients are remembered unless set otherwise.
const RateClients = 1 << 16

// A payer is a client with its rate, and how the rate is called in headers.
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

// charge takes n from what whoever sent the request may still ask for.
func (a *api) charge(w http.ResponseWriter, on *exchange, n int) error {
	p := on.payer
	if p.rate.PerSecond == 0 || n == 0 {
		return nil
	}
	if on.paid += n; on.paid > p.rate.Burst {
		return ErrBatchTooLarge.Because("%d at once are more than the rate limit ever allows, %d", on.paid, p.rate.Burst)
	}
	q := a.limiter.take(a.Now(), p.client, p.rate, n)
	header := w.Header()
	header["Ratelimit-Policy"] = []string{policyField(p)}
	header["Ratelimit"] = []string{quotaField(p, q)}
	if q.wait > 0 {
		header["Retry-After"] = []string{strconv.Itoa(seconds(q.wait))}
		return ErrRateLimited.Because("at most %d/s, and %d at once", p.rate.PerSecond, p.rate.Burst)
	}
	return nil
}

// chargeUpTo charges a request as n in all. What it was charged before counts.
func (a *api) chargeUpTo(w http.ResponseWriter, on *exchange, n int) error {
	return a.charge(w, on, max(n-on.paid, 0))
}

// affords charges n more if the client can pay now, and reports whether it could.
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
	w.Header()["Ratelimit"] = []string{quotaField(p, q)}
	return true
}

// bodyUnit is how many bytes of a body count as one request: a body of 1 MiB is read,
// hashed and decoded for what 64 small requests cost.
const bodyUnit = 16 << 10

// chargeBody charges for the bytes of a body, before anything is made of it. The items of
// a batch are charged beside it, and the larger of the two counts. A body counts as no
// more than the client's burst: no rate forbids a body of the allowed size for ever.
func (a *api) chargeBody(w http.ResponseWriter, on *exchange, bytes int) error {
	return a.chargeUpTo(w, on, min((bytes+bodyUnit-1)/bodyUnit, on.payer.rate.Burst))
}

// rowsUnit is how many members of a group that are read for an answer count as one request.
const rowsUnit = 10

// chargeMembers charges for a cancel before it visits its members: one for each that it
// cancels, and one for each ten that it answers for. A group counts as no more than the
// client's burst: no rate forbids to cancel a large one for ever.
func (a *api) chargeMembers(w http.ResponseWriter, on *exchange, carried, read int) error {
	return a.chargeUpTo(w, on, min(carried+(read+rowsUnit-1)/rowsUnit, on.payer.rate.Burst))
}

// Limit is one beside the API's own that has refused a part of a request or all of it.
type Limit struct {
	Name string // in headers; empty for what is not counted
	Rate Rate
	Left int           // so many may follow at once
	Wait time.Duration // until what was refused may be asked for
}

// Limited tells in the answer's header of a limit that was reached.
func (r Request) Limited(l Limit) {
	header := r.w.Header()
	header["Retry-After"] = []string{strconv.Itoa(seconds(l.Wait))}
	if l.Name == "" {
		return
	}
	p := payer{rate: l.Rate, name: l.Name}
	add := func(name, field string) { // to a list, as RFC 9651 has it
		header[name] = []string{strings.Join(append(header[name], field), ", ")}
	}
	add("Ratelimit-Policy", policyField(p))
	add("Ratelimit", quotaField(p, quota{left: l.Left, wait: l.Wait}))
}

// The two fields of draft-ietf-httpapi-ratelimit-headers-11: the quota and its
// window; what is left of it, and the seconds until it is whole again, or until
// what was refused may be asked for.
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

// seconds rounds up: whoever waits that long has waited long enough.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
