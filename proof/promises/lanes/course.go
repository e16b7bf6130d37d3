package lanes

import (
	"slices"
	"strings"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// agreed reports whether a witness is valid: enough different endpoints, at a block.
func agreed(w lane.Witness) bool {
	names := slices.Clone(w.Endpoints)
	slices.Sort(names)
	n := len(slices.Compact(names))
	return w.Needed > 0 && n >= w.Needed && n <= w.Asked && !w.Block.IsZero()
}

// advanced checks P6: the cursor goes forward, by a quorum of endpoints.
func (j *Judge) advanced(c *course, r eventlog.Recorded, e lane.Advanced) {
	to := e.Witness.Nonce
	j.cases.Add(promises.P6)
	switch {
	case e.From != c.next || to < c.next || to == c.next && c.known:
		j.broken(promises.P6, r, "the cursor goes from %d to %d, it was at %d", e.From, to, c.next)
	case !agreed(e.Witness):
		j.broken(promises.P6, r, "the cursor goes to %d, for which %d of %d endpoints must agree, but only %q did", to, e.Witness.Needed, e.Witness.Asked, e.Witness.Endpoints)
	}
	if to > c.next {
		c.jumps = append(c.jumps, lane.Span{First: c.next, End: to})
	}
	c.known, c.next = true, max(c.next, to)
}

// reserved checks P4, P5 and P6: new nonces are contiguous from the cursor, reissued ones were
// free, and an intent holds one nonce.
func (j *Judge) reserved(c *course, r eventlog.Recorded, e lane.Reserved) {
	if c.known && len(e.Intents) > 0 {
		j.cases.Add(promises.P5)
		j.cases.Add(promises.P6)
	}
	for _, issue := range e.Reissued {
		if slot := c.open[issue.Nonce]; slot == nil || !slot.free() {
			j.broken(promises.P4, r, "nonce %d is assigned again to %s without a release", issue.Nonce, issue.Intent)
		}
		j.give(c, r, issue.Nonce, issue.Intent)
	}
	switch {
	case len(e.Intents) == 0:
		return
	case !c.known:
		j.broken(promises.P6, r, "nonces are assigned before the lane's first nonce is known")
	case e.First < c.next:
		j.broken(promises.P6, r, "nonces are handed out from %d, the cursor was at %d", e.First, c.next)
	case e.First > c.next:
		j.broken(promises.P5, r, "nonces are assigned from %d, which leaves a gap from %d", e.First, c.next)
	}
	for i, id := range e.Intents {
		n := e.First + uint64(i)
		if c.open[n] != nil {
			j.broken(promises.P4, r, "nonce %d is handed out to %s, and is held by %s", n, id, c.open[n].intent)
		}
		j.give(c, r, n, id)
	}
	c.next = max(c.next, e.First+uint64(len(e.Intents)))
}

// give assigns a nonce to an intent. A nonce that others wait for stays a hole.
func (j *Judge) give(c *course, r eventlog.Recorded, n uint64, id chain.IntentID) {
	j.cases.Add(promises.P4)
	if other, holds := c.holds[id]; holds || id.IsZero() {
		j.broken(promises.P4, r, "intent %s gets nonce %d, and holds %d", id, n, other)
	}
	c.holds[id] = n
	slot := &nonce{intent: id}
	if was := c.open[n]; was != nil {
		slot.since, slot.told = was.since, was.told
	}
	c.open[n] = slot
}

// reclaimed checks P4: only jumped-over nonces were never reserved.
func (j *Judge) reclaimed(c *course, r eventlog.Recorded, e lane.Reclaimed) {
	first := e.Witness.Nonce
	out := lane.Span{First: first, End: first + e.Count}
	i := slices.IndexFunc(c.jumps, func(s lane.Span) bool { return s.First <= first && first < s.End })
	if e.Count > lane.ReserveMax {
		j.broken(promises.P5, r, "%d nonces are reclaimed at once", e.Count)
		return
	}
	if !agreed(e.Witness) {
		j.broken(promises.P6, r, "nonce %d is treated as missing, for which %d of %d endpoints must agree, but only %q did", first, e.Witness.Needed, e.Witness.Asked, e.Witness.Endpoints)
	}
	var left []lane.Span
	for reached := first; reached < out.End; {
		if i < 0 || i >= len(c.jumps) || c.jumps[i].First > reached {
			j.broken(promises.P4, r, "nonces from %d to %d are reclaimed, and %d was handed out before", out.First, out.End-1, reached)
			return
		}
		reached = c.jumps[i].End
		i++
	}
	for _, s := range c.jumps {
		for _, part := range []lane.Span{{First: s.First, End: min(s.End, out.First)}, {First: max(s.First, out.End), End: s.End}} {
			if part.First < part.End {
				left = append(left, part)
			}
		}
	}
	c.jumps = left
	above := false // above: a signed nonce waits for them
	for n, slot := range c.open {
		above = above || n >= out.End && len(slot.attempts) > 0
	}
	for n := out.First; n < out.End; n++ {
		c.open[n] = &nonce{}
		if above {
			c.open[n].since = r.At
		}
	}
}

// released checks P5: a nonce is released only if nothing was signed for it.
func (j *Judge) released(c *course, r eventlog.Recorded, e lane.Released) {
	slot := c.open[e.Nonce]
	j.cases.Add(promises.P5)
	switch {
	case slot == nil || slot.intent.IsZero() || slot.intent != e.Intent:
		j.broken(promises.P4, r, "%s releases nonce %d, which it does not hold", e.Intent, e.Nonce)
		return
	case len(slot.attempts) > 0:
		j.broken(promises.P5, r, "nonce %d is released, and %s was signed for it", e.Nonce, slot.attempts[0].hash)
	}
	delete(c.holds, e.Intent)
	c.open[e.Nonce] = &nonce{since: slot.since, told: slot.told}
}

// filled checks P4: a no-op takes a nonce that no intent holds.
func (j *Judge) filled(c *course, r eventlog.Recorded, e lane.Filled) {
	slot := c.open[e.Nonce]
	if slot == nil || !slot.free() {
		j.broken(promises.P4, r, "a no-op takes nonce %d, which is not free", e.Nonce)
		return
	}
	slot.noop = true
}

// attempted checks P4 and P8: an attempt is by the nonce's intent or a no-op, and each attempt
// has one hash.
func (j *Judge) attempted(c *course, r eventlog.Recorded, e lane.Attempted) {
	slot := c.open[e.Nonce]
	if slot == nil {
		j.broken(promises.P4, r, "%s is signed for nonce %d, which is not open", e.Hash, e.Nonce)
		return
	}
	n := len(slot.attempts)
	switch {
	case e.Number != n+1:
		j.broken(promises.P8, r, "attempt %d at nonce %d follows %d", e.Number, e.Nonce, n)
	case slices.ContainsFunc(slot.attempts, func(a attempt) bool { return a.hash == e.Hash }):
		j.broken(promises.P8, r, "%s is an attempt at nonce %d twice", e.Hash, e.Nonce)
	case !e.Intent.IsZero() && e.Intent != slot.intent, e.Intent.IsZero() && n == 0 && !slot.noop:
		j.broken(promises.P4, r, "%s is signed for %s at nonce %d, which %s holds", e.Hash, e.Intent, e.Nonce, slot.intent)
	}
	j.replaces(slot, r, e)
	slot.attempts = append(slot.attempts, attempt{intent: e.Intent, hash: e.Hash, fee: e.Fee, at: r.At, token: e.Token})
	slot.since = time.Time{}
	if n > 0 {
		return
	}
	for below, other := range c.open {
		if below < e.Nonce && len(other.attempts) == 0 && other.since.IsZero() {
			other.since = r.At
		}
	}
}

// replaces checks P17 for nonces: a replacement of delivered attempts offers the pools' minimum
// raise, and attempts are not too frequent.
func (j *Judge) replaces(slot *nonce, r eventlog.Recorded, e lane.Attempted) {
	n := len(slot.attempts)
	for _, a := range slot.attempts {
		if a.known(e.Token) {
			j.cases.Add(promises.P17)
		}
		if a.known(e.Token) && (!outbids(e.Fee.MaxFee, a.fee.MaxFee) || !outbids(e.Fee.MaxPriorityFee, a.fee.MaxPriorityFee)) {
			j.broken(promises.P17, r, "%s offers %s and a tip of %s at nonce %d, and no pool takes that in the place of %s, %s and %s",
				e.Hash, e.Fee.MaxFee, e.Fee.MaxPriorityFee, e.Nonce, a.hash, a.fee.MaxFee, a.fee.MaxPriorityFee)
			break
		}
	}
	if most := j.s.Attempts; most > 0 && n >= most && r.At.Sub(slot.attempts[n-most].at) < time.Minute {
		j.broken(promises.P17, r, "%s is attempt %d at nonce %d, and %d others were signed in the last minute", e.Hash, e.Number, e.Nonce, most)
	}
}

// known reports whether the holder with token `to` knows that an attempt was delivered: the
// attempt is its own, or was delivered before it opened the lane. A stalled earlier holder may
// deliver its own attempts at any time, which the holder cannot know.
func (a attempt) known(to lane.Token) bool {
	return a.delivered && (a.token == to || a.under < to)
}

// outbids reports whether pools accept a price as a replacement of another: at least a tenth
// higher. Source: go-ethereum, core/txpool/legacypool, DefaultConfig.PriceBump; reth has the
// same.
func outbids(price, other chain.Price) bool {
	more, under := new(uint256.Int).SubOverflow(price.Int(), other.Int())
	if under || more.IsZero() {
		return false
	}
	tenfold, over := new(uint256.Int).MulOverflow(more, uint256.NewInt(10))
	return over || !tenfold.Lt(other.Int())
}

// delivered checks P8 for signers: a transaction that the relay delivers is an attempt of the
// lane. For closed nonces the attempts are not known any more.
func (j *Judge) delivered(r eventlog.Recorded) {
	if r.Meta.Actor != lane.Actor || !strings.HasPrefix(string(r.Stream), tx.StreamPrefix) {
		return
	}
	e, err := j.txs.Decode(r.Name, r.Data)
	if err != nil {
		return // package promise reports it
	}
	t, first := e.(tx.Accepted)
	if !first {
		return
	}
	j.cases.Add(promises.P8)
	c := j.lanes[lane.Stream(chain.Sequence{Chain: t.Chain, Sender: t.Sender, Key: t.NonceKey})]
	if c == nil || t.Nonce >= c.next {
		j.broken(promises.P8, r, "%s is delivered, and the lane had not handed out nonce %d", t.Hash, t.Nonce)
		return
	}
	slot := c.open[t.Nonce]
	if slot == nil {
		return
	}
	i := slices.IndexFunc(slot.attempts, func(a attempt) bool { return a.hash == t.Hash })
	if i < 0 {
		j.broken(promises.P8, r, "%s is delivered, and is none of the %d attempts at nonce %d", t.Hash, len(slot.attempts), t.Nonce)
		return
	}
	slot.attempts[i].delivered, slot.attempts[i].under = true, c.token
}

// landed checks P10: a nonce is used once, by one of its attempts.
func (j *Judge) landed(c *course, r eventlog.Recorded, e lane.Landed) {
	slot := c.open[e.Nonce]
	if slot == nil {
		j.broken(promises.P10, r, "%s lands at nonce %d, which is not open", e.Hash, e.Nonce)
		return
	}
	j.cases.Add(promises.P10)
	ours := slices.ContainsFunc(slot.attempts, func(a attempt) bool { return a.intent == e.Intent && a.hash == e.Hash })
	switch {
	case !ours:
		j.broken(promises.P10, r, "%s lands at nonce %d and is not one of its attempts", e.Hash, e.Nonce)
	case !slot.landed.IsZero() && (slot.by != e.Hash || slot.landed.Hash != e.Block.Hash):
		j.broken(promises.P10, r, "%s lands at nonce %d, and %s had", e.Hash, e.Nonce, slot.by)
	}
	slot.landed, slot.by = e.Block, e.Hash
	if e.Final {
		c.shut(e.Nonce)
	}
}

func (j *Judge) unlanded(c *course, r eventlog.Recorded, e lane.Unlanded) {
	for _, n := range e.Nonces {
		slot := c.open[n]
		j.cases.Add(promises.P13)
		if slot == nil || slot.landed.Hash != e.Was.Hash || e.Was.Hash == e.Now.Hash {
			j.broken(promises.P13, r, "nonce %d is un-mined from block %s, and was not in it", n, e.Was.Hash)
			continue
		}
		slot.landed, slot.by = chain.Block{}, chain.Hash{}
	}
}

// lost checks P11 for nonces: the final chain has used the nonce with another transaction.
func (j *Judge) lost(c *course, r eventlog.Recorded, e lane.Lost) {
	slot := c.open[e.Nonce]
	if slot == nil {
		j.broken(promises.P10, r, "nonce %d is lost, which is not open", e.Nonce)
		return
	}
	j.cases.Add(promises.P11)
	switch {
	case !slot.landed.IsZero():
		j.broken(promises.P11, r, "nonce %d is lost, and %s has landed", e.Nonce, slot.by)
	case !e.Witness.Final || !agreed(e.Witness) || e.Witness.Nonce <= e.Nonce:
		j.broken(promises.P11, r, "nonce %d is lost, but its quorum reports %d at block %d, final %t", e.Nonce, e.Witness.Nonce, e.Witness.Block.Number, e.Witness.Final)
	case slices.ContainsFunc(slot.attempts, func(a attempt) bool { return a.hash == e.Rival }):
		j.broken(promises.P11, r, "nonce %d is lost to %s, which is one of its attempts", e.Nonce, e.Rival)
	}
	c.shut(e.Nonce)
}

// shut drops a closed nonce.
func (c *course) shut(n uint64) {
	delete(c.holds, c.open[n].intent)
	delete(c.open, n)
}
