package worker

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// openMax bounds how many open intents a feeder remembers.
const openMax = 100_000

// openIntents are the open intents that a feeder has seen opened, up to openMax, so that
// only lanes that may claim an intent are woken for it. The zero value is ready.
type openIntents struct {
	all map[chain.IntentID]intent.Waiting
	// groups are the members of each ordering group, in the order of their requests.
	groups map[intent.Row][]chain.IntentID
	lost   bool // an intent did not fit, so its group's next member is unknown
}

func (o *openIntents) add(w intent.Waiting) {
	if o.all == nil {
		o.all, o.groups = map[chain.IntentID]intent.Waiting{}, map[intent.Row][]chain.IntentID{}
	}
	if _, again := o.all[w.ID]; again {
		return
	}
	if len(o.all) >= openMax {
		o.lost = true
		return
	}
	o.all[w.ID] = w
	if w.Row != (intent.Row{}) {
		o.groups[w.Row] = append(o.groups[w.Row], w.ID)
	}
}

// remove forgets an ended intent, and returns the intent that may be claimed next: the next
// of its ordering group, perhaps for another lane. more means that this is unknown.
func (o *openIntents) remove(id chain.IntentID) (next []intent.Waiting, more bool) {
	w, known := o.all[id]
	if !known {
		return nil, true
	}
	delete(o.all, id)
	if w.Row == (intent.Row{}) {
		return nil, false
	}
	left := o.groups[w.Row]
	if n := slices.Index(left, id); n >= 0 {
		left = slices.Delete(left, n, n+1)
	}
	if len(left) == 0 {
		delete(o.groups, w.Row)
		return nil, o.lost
	}
	o.groups[w.Row] = left
	return []intent.Waiting{o.all[left[0]]}, false
}
