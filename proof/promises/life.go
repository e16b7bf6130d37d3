package promises

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// life is the judge's state of a transaction that may still change.
type life struct {
	key      Key
	known    bool // its Accepted was seen
	accepted tx.Accepted
	version  eventlog.Version
	tie      tie
	position eventlog.Position // of its first event
	at       time.Time         // of its first event, by the store's clock
	newestAt time.Time         // of its last event

	status    tx.Status // as reported to its owner
	verdict   tx.Status
	block     chain.Block
	attempt   int
	taken     bool // a node accepted the bytes, as recorded
	handed    bool // a node may have the bytes
	refused   bool // permanently, by every node
	canceled  bool
	cancelAt  time.Time
	sealed    bool
	violated  bool
	erased    bool
	retired   bool
	joined    bool
	confirmed bool
	cause     tx.Cause // of the last recorded attempt

	resubmitters []string // clients beside the first that submitted it
	canceledBy   *roll    // group whose cancel has not been carried out on it yet

	sends      int // times that its bytes reached a node
	sentAt     time.Time
	lately     map[string][]time.Time // the last sends to each node
	reopenedAt time.Time              // time of an un-mining without a send or verdict since
	lostAt     time.Time              // when its block left the chain, if not recorded yet
	waitedTill time.Time              // last time at which it had a reason to wait
	slowTold   bool                   // the end of its attempts was reported

	ackedAt time.Time
	history []shown // its statuses in order
	seen    shown   // the newest status shown to a client
	seenAt  time.Time
}

// shown is a status and the version of the event that set it.
type shown struct {
	version eventlog.Version
	status  tx.Status
}

// show records the status that a reader may see from a version on.
func (l *life) show(v eventlog.Version) {
	if n := len(l.history); n == 0 || l.history[n-1].status != l.status {
		l.history = append(l.history, shown{v, l.status})
	}
}

// settled reports whether no work is left.
func (l *life) settled() bool { return l.sealed || l.violated || l.retired }

// over reports whether the transaction has ended for its owner.
func (l *life) over() bool { return l.settled() || l.canceled || l.refused }

// sendable reports whether the bytes should still be sent.
func (l *life) sendable() bool {
	return !l.canceled && !l.refused && l.verdict == tx.StatusAbsent && !l.violated
}

// pending reports whether the sender, and with it any group, is only claimed.
func (l *life) pending() bool {
	return l.accepted.Signature == chain.Keychain && !l.accepted.Authorized && !l.confirmed
}

// due returns when the first attempt is due, by the clocks of log and chain.
func (l *life) due() time.Time {
	const farFuture = 1 << 33 // the year 2242
	if eligible := time.Unix(int64(min(l.accepted.EligibleAt, farFuture)), 0); eligible.After(l.at) {
		return eligible
	}
	return l.at
}

// ended is the judge's state of a transaction that has ended.
type ended struct {
	status, verdict tx.Status
	at              time.Time
	tie             tie
	version         uint32
	canceled        bool
	sealed          bool
	erased          bool
	retired         bool
	violated        bool
	grouped         bool // it has a group
	joined          bool
	acked           bool
	pending         bool // its sender is only claimed
}

// lane is a digest of a nonce and its sequence.
type lane [16]byte

func laneOf(a tx.Accepted) lane {
	var number [16]byte
	for i := range 8 {
		number[i] = byte(uint64(a.Chain) >> (8 * i))
		number[8+i] = byte(a.Nonce >> (8 * i))
	}
	digest := chain.Keccak(number[:], a.Sender[:], a.NonceKey[:])
	return lane(digest[:16])
}

// live judges an event of a transaction that has not ended.
func (j *Judge) live(l *life, r eventlog.Recorded, e tx.Event) {
	if l.violated {
		j.broken(P12, r.Stream, r.Position, "%s follows the violation of finality", r.Name)
		return
	}
	switch e := e.(type) {
	case tx.Accepted:
		j.broken(P3, r.Stream, r.Position, "it is accepted again")
	case tx.Resubmitted:
		if e.Client == l.accepted.Client || slices.Contains(l.resubmitters, e.Client) {
			j.broken(P25, r.Stream, r.Position, "client %q is recorded again as its submitter", e.Client)
		}
		l.resubmitters = append(l.resubmitters, e.Client)
	case tx.Broadcast:
		j.broadcast(l, r, e)
	case tx.Rejected:
		j.rejected(l, r, e)
	case tx.Mined:
		j.mined(l, r, e)
	case tx.StaleByNonce:
		j.stale(l, r, e)
	case tx.Expired:
		j.expired(l, r, e)
	case tx.Reorged:
		j.reorged(l, r, e)
	case tx.Finalized:
		j.finalized(l, r, e)
	case tx.FinalityViolated:
		j.broken(P12, r.Stream, r.Position, "a finality violation without a sealed verdict")
		l.violated = true
	case tx.CanceledLocally:
		j.canceledLocally(l, r, e)
	case tx.GroupDoubted:
		j.claimed(l, r)
	case tx.GroupConfirmed:
		j.claimed(l, r)
		l.confirmed = true
	case tx.PayloadErased:
		j.erase(l, r)
	case tx.Retired:
		if !l.refused || l.handed || !l.erased {
			j.broken(P2, r.Stream, r.Position, "it is forgotten before its end, %s", l.status)
		}
		l.retired = true
	}
	l.show(r.Version)
}

// claimed checks P25 for events about an access key: none is recorded after the key is confirmed.
func (j *Judge) claimed(l *life, r eventlog.Recorded) {
	if l.known && !l.pending() {
		j.broken(P25, r.Stream, r.Position, "%s, though its sender is not a claim", r.Name)
	}
}

// erase checks P2 for signed bytes: they are erased only when no longer needed.
func (j *Judge) erase(l *life, r eventlog.Recorded) {
	switch {
	case l.erased:
		j.broken(P25, r.Stream, r.Position, "its bytes are erased again")
	case !l.canceled && !l.refused:
		j.broken(P2, r.Stream, r.Position, "its bytes are erased while it is %s", l.status)
	}
	l.erased = true
}

// after checks P12 for an event of a transaction that has ended.
func (j *Judge) after(p ended, key Key, r eventlog.Recorded, e tx.Event) ended {
	j.cases.Add(P12)
	if p.violated {
		j.broken(P12, r.Stream, r.Position, "%s follows the violation of finality", r.Name)
		return p
	}
	switch e := e.(type) {
	case tx.PayloadErased:
		if p.erased {
			j.broken(P25, r.Stream, r.Position, "its bytes are erased again")
		}
		p.erased = true
	case tx.Retired:
		if !p.erased || p.retired {
			j.broken(P2, r.Stream, r.Position, "it is forgotten, erased %t, forgotten before %t", p.erased, p.retired)
		}
		p.retired = true
	case tx.Resubmitted:
		if p.retired || p.violated {
			j.broken(P2, r.Stream, r.Position, "another client submitted it after the end of its stream, and that is recorded")
		}
	case tx.GroupDoubted, tx.GroupConfirmed:
		if !p.pending {
			j.broken(P25, r.Stream, r.Position, "%s, though its sender is not a claim", r.Name)
		}
		if _, yes := e.(tx.GroupConfirmed); yes {
			p.pending = false
		}
	case tx.FinalityViolated:
		if p.verdict == tx.StatusAbsent {
			j.broken(P12, r.Stream, r.Position, "a finality violation without a sealed verdict")
		}
		j.alarm(key, p, r, e)
		p.violated = true
	case tx.Accepted:
		j.broken(P3, r.Stream, r.Position, "it is accepted again")
	case tx.Mined, tx.StaleByNonce, tx.Expired, tx.Reorged, tx.Finalized:
		// A transaction refused by every node may be erased before the chain decides.
		if p.sealed {
			j.broken(P12, r.Stream, r.Position, "%s follows the end, %s", r.Name, p.status)
		}
	default:
		j.broken(P12, r.Stream, r.Position, "%s follows the end, %s", r.Name, p.status)
	}
	return p
}
