package promises

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Sent judges bytes that reached a node. It is called after the events that were durable by then.
func (j *Judge) Sent(s Sent) []Violation {
	j.figures.Sent++
	raw := chain.Keccak(s.Raw)
	key := Key{s.Chain, raw}
	if named, ok := j.named[key]; ok {
		key = named
	}
	l, past, over := j.find(key)
	if l == nil && !over {
		// Its hash is not the hash of its bytes, or it is unknown.
		if decoded := j.decode(s); decoded != nil {
			key = Key{decoded.Chain, decoded.Hash}
			l, past, over = j.find(key)
		}
	}
	switch {
	case l != nil:
		j.sent(l, s, raw)
	case over:
		j.sentLate(past, key, s)
	default:
		j.broken(P8, key.stream(), 0, "%d bytes reached %s at %s, but the log does not have them", len(s.Raw), s.Node, s.At.UTC().Format(time.RFC3339Nano))
	}
	return j.tell()
}

func (j *Judge) find(key Key) (*life, ended, bool) {
	if l := j.open[key]; l != nil {
		return l, ended{}, false
	}
	past, over := j.ended[key]
	return nil, past, over
}

func (j *Judge) decode(s Sent) *chain.Signed {
	if j.s.Decode == nil {
		return nil
	}
	decoded, err := j.s.Decode(s.Raw)
	if err != nil {
		return nil
	}
	return &decoded
}

func (j *Judge) sent(l *life, s Sent, raw chain.Hash) {
	j.cases.Add(P8)
	j.intact(l, s, raw)
	j.inWindow(l, s)
	if l.canceled {
		j.cases.Add(P23)
	}
	if !l.reopenedAt.IsZero() {
		j.cases.Add(P14)
	}
	if l.canceled && s.At.After(l.cancelAt.Add(j.s.Grace+j.s.Skew)) {
		j.broken(P23, l.key.stream(), 0, "it reached %s %s after it was canceled", s.Node, s.At.Sub(l.cancelAt))
	}
	if l.sends == 0 && l.attempt == 0 && l.known {
		j.figures.Late.Add(s.At.Sub(l.due()))
	}
	j.polite(l, s)
	l.sends++
	if s.At.After(l.sentAt) {
		l.sentAt = s.At
	}
	l.reopenedAt, l.slowTold = time.Time{}, false
}

// sentLate checks P12 and P23: after the end, only attempts already running reach a node.
func (j *Judge) sentLate(p ended, key Key, s Sent) {
	n := P12
	if p.canceled {
		n = P23
	}
	j.cases.Add(n)
	if !s.At.After(p.at.Add(j.s.Grace + j.s.Skew)) {
		return
	}
	j.broken(n, key.stream(), 0, "it reached %s %s after its end, %s", s.Node, s.At.Sub(p.at), p.status)
}

// intact checks P9 and P29: the bytes are the accepted ones and decode to the recorded fields.
// They are decoded the first time only; later they are compared by hash.
func (j *Judge) intact(l *life, s Sent, raw chain.Hash) {
	if !l.known {
		return
	}
	a := l.accepted
	j.cases.Add(P9)
	if raw != a.RawHash || len(s.Raw) != a.Bytes {
		j.broken(P9, l.key.stream(), l.position, "%d bytes with Keccak %s reached %s; accepted were %d with %s", len(s.Raw), raw, s.Node, a.Bytes, a.RawHash)
		return
	}
	if l.sends > 0 || j.s.Decode == nil {
		return
	}
	j.cases.Add(P29)
	d, err := j.s.Decode(s.Raw)
	switch {
	case err != nil:
		j.broken(P29, l.key.stream(), l.position, "the accepted bytes cannot be decoded: %v", err)
	case d.Chain != a.Chain || d.Hash != a.Hash || d.Sender != a.Sender:
		j.broken(P9, l.key.stream(), l.position, "the bytes are %s of %s on chain %s; recorded is %s of %s", d.Hash, d.Sender, d.Chain, a.Hash, a.Sender)
	case d.NonceKey != a.NonceKey || d.Nonce != a.Nonce || d.Window != a.Window || d.Type != a.Type || d.Signature != a.Signature:
		j.broken(P29, l.key.stream(), l.position, "the bytes say nonce %s/%d and window %v; recorded is %s/%d and %v", d.NonceKey, d.Nonce, d.Window, a.NonceKey, a.Nonce, a.Window)
	}
}

// inWindow checks P15.
func (j *Judge) inWindow(l *life, s Sent) {
	if !l.known {
		return
	}
	const farFuture = 1 << 33 // the year 2242
	second := func(n uint64) time.Time { return time.Unix(int64(min(n, farFuture)), 0) }
	a := l.accepted
	if a.Window != (chain.Window{}) {
		j.cases.Add(P15)
	}
	opens := second(a.Opens()).Add(-j.s.Lead)
	if s.At.Before(opens.Add(-j.s.Skew)) && second(s.ChainTime).Before(opens) {
		j.broken(P15, l.key.stream(), l.position, "it reached %s at %s, %s before it was eligible", s.Node, s.At.UTC().Format(time.RFC3339Nano), opens.Sub(s.At))
	}
	if a.Window.Before == 0 {
		return
	}
	last := second(a.Window.Before).Add(j.s.Grace + j.s.Skew)
	if s.At.After(last) || second(s.ChainTime).After(last) {
		j.broken(P15, l.key.stream(), l.position, "it reached %s at %s, when its window had ended at %d", s.Node, s.At.UTC().Format(time.RFC3339Nano), a.Window.Before)
	}
}

// polite checks the part of P17 that limits the load of nodes.
func (j *Judge) polite(l *life, s Sent) {
	if l.sends > 0 {
		j.cases.Add(P17)
	}
	if l.lately == nil {
		l.lately = map[string][]time.Time{}
	}
	lately := slices.DeleteFunc(l.lately[s.Node], func(t time.Time) bool { return s.At.Sub(t) >= time.Second })
	if lately = append(lately, s.At); len(lately) > j.s.Rate {
		j.broken(P17, l.key.stream(), l.position, "it reached %s %d times within a second", s.Node, len(lately))
		lately = nil
	}
	l.lately[s.Node] = lately
}

// Tick judges the passing of time: the work that should be done by now. up means that since the
// last Tick the service, its store and a node were able to do it; otherwise nothing is due.
func (j *Judge) Tick(now time.Time, up bool) []Violation {
	for _, l := range j.sorted() {
		c := j.chainOf(l.key.Chain)
		if c == nil || !l.known {
			continue
		}
		if !up {
			l.waitedTill, l.lostAt = now, time.Time{}
			continue
		}
		j.unmined(l, c, now)
		j.keepsTrying(l, c, now)
	}
	return j.tell()
}

// unmined checks P13: a verdict does not stay for long on a replaced block.
func (j *Judge) unmined(l *life, c Chain, now time.Time) {
	at, known := c.At(l.block.Number)
	switch {
	case l.verdict == tx.StatusAbsent || !known || at.Hash == l.block.Hash:
		l.lostAt = time.Time{}
	case l.lostAt.IsZero():
		j.cases.Add(P13)
		l.lostAt = now
	case now.Sub(l.lostAt) > j.s.Recovery:
		j.broken(P13, l.key.stream(), l.position, "%s rests on block %d, %s; for %s the chain has had %s there", l.verdict, l.block.Number, l.block.Hash, now.Sub(l.lostAt), at.Hash)
		l.lostAt = now // reported again if it continues
	}
}

// keepsTrying checks P14 and the rest of P17, for transactions that have no reason to wait.
func (j *Judge) keepsTrying(l *life, c Chain, now time.Time) {
	if !l.sendable() || j.waits(l, c, now) {
		l.waitedTill = now
		return
	}
	since := func(t time.Time) time.Duration {
		if l.waitedTill.After(t) {
			t = l.waitedTill
		}
		return now.Sub(t)
	}
	if !l.reopenedAt.IsZero() && since(l.reopenedAt) > j.s.Recovery {
		j.broken(P14, l.key.stream(), l.position, "un-mined at %s, and not sent for %s", l.reopenedAt.UTC().Format(time.RFC3339Nano), since(l.reopenedAt))
		l.reopenedAt = time.Time{}
	}
	last := l.sentAt
	if due := l.due(); due.After(last) {
		last = due
	}
	if j.s.Gap > 0 && !l.slowTold && since(last) > j.s.Gap {
		j.broken(P17, l.key.stream(), l.position, "it may be sent, and has not been for %s", since(last))
		l.slowTold = true
	}
}

// waits reports whether there is a reason not to send: it is too early or too late, its nonce is
// not the next, or its account cannot pay.
func (j *Judge) waits(l *life, c Chain, now time.Time) bool {
	a := l.accepted
	if now.Before(l.due()) || a.Window.ClosedAt(uint64(max(now.Unix(), 0))) || j.unfit[tx.AccountOf(a)] {
		return true
	}
	if a.NonceKey.IsExpiring() {
		return false
	}
	next, known := c.Next(chain.Sequence{Chain: a.Chain, Sender: a.Sender, Key: a.NonceKey})
	return !known || next != a.Nonce
}
