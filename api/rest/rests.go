package rest

import (
	"cmp"
	"sync"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// restShare limits a client to 1/restShare of the places for waiting requests, to leave
// room for other clients.
const restShare = 4

// Holder is the client of a key, or the address of a request without a key. All keys of
// one client are one holder.
type Holder struct {
	keyed   bool
	client  string
	address client
}

// HolderOf returns the holder of all keys of a client.
func HolderOf(client string) Holder { return Holder{keyed: true, client: client} }

func (on *exchange) holder() Holder {
	if on.key != nil {
		return Holder{keyed: true, client: on.client()}
	}
	return Holder{address: on.payer.client}
}

// rests counts requests of each holder: waiting requests, streams, or requests in progress.
type rests struct {
	mu sync.Mutex
	of map[Holder]int
}

// rest lets a request wait, unless as many of its client's requests do as may have a
// share of the places. A client without a rate shares an address with everybody on this
// machine, or is trusted with more: its requests that wait count as those in progress do.
func (on *exchange) rest() (leave func(), ok bool) {
	if on.unlimited() {
		return func() {}, true
	}
	left, _, ok := on.api.waiting.take(on.holder(), max(on.api.Limits.Connections/restShare, 1))
	if !ok {
		return left, false
	}
	back := on.place.rest()
	return func() { back(); left() }, true
}

// openStream lets a request open a stream, unless its client's quota of streams is used up.
// Requests without a key and without a rate come from this machine; only the limit of all
// streams bounds them.
func (a *api) openStream(on *exchange) (leave func(), err error) {
	if on.key == nil && on.unlimited() {
		return func() {}, nil
	}
	quota := cmp.Or(a.Limits.ClientStreams, ClientStreams)
	left, open, ok := a.streaming.take(on.holder(), quota)
	if !ok {
		return left, access.ErrQuotaExceeded.Because("the client has %s of events open at this process, quota.streams allows %d", commands.Counted(open, "stream"), quota)
	}
	report := func() {
		if a.QuotaUsed != nil {
			a.QuotaUsed("streams", a.streaming.most(), quota)
		}
	}
	report()
	return func() { left(); report() }, nil
}

// take counts a request of the holder, if the holder has fewer than most.
func (r *rests) take(h Holder, most int) (leave func(), present int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[h] >= most {
		return func() {}, r.of[h], false
	}
	r.count(h)
	return func() { r.leave(h) }, r.of[h], true
}

// add counts a holder's request in, however many are.
func (r *rests) add(h Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(h)
}

// count counts a holder's request. The lock is held.
func (r *rests) count(h Holder) {
	if r.of == nil {
		r.of = map[Holder]int{}
	}
	r.of[h]++
}

func (r *rests) leave(h Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[h]--; r.of[h] == 0 {
		delete(r.of, h)
	}
}

// most returns the highest count of any holder.
func (r *rests) most() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.of {
		n = max(n, of)
	}
	return n
}
