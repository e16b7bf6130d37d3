package promises

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// asked is a request with an idempotency key.
type asked struct {
	print chain.Hash
	hash  chain.Hash
}

// Call judges a client's request and its answer. It is called after the call has ended.
func (j *Judge) Call(c Call) []Violation {
	j.figures.Calls++
	key := Key{c.Chain, c.Hash}
	if c.Overload {
		j.figures.Shed++
		j.cases.Add(P27)
		if !c.Later {
			j.broken(P27, "", 0, "a client was refused at %s without a time to retry", c.Ended.UTC().Format(time.RFC3339Nano))
		}
	}
	switch {
	case c.Kind == Submit && c.Result == OK:
		j.told(key, c)
	case c.Kind == Read && c.Result == OK:
		j.read(key, c)
	}
	return j.tell()
}

// told checks P1 and, for requests with a key, P3. For transactions that are not in the log yet,
// P1 is decided at the end.
func (j *Judge) told(key Key, c Call) {
	l, past, over := j.find(key)
	j.cases.Add(P1)
	switch {
	case l != nil && l.ackedAt.IsZero():
		l.ackedAt = c.Ended
	case over && !past.acked:
		past.acked = true
		j.ended[key] = past
	case l == nil && !over:
		if _, before := j.acked[key]; !before {
			j.acked[key] = c.Ended
		}
	}
	if c.Key == "" {
		return
	}
	before, named := j.asked[c.Key]
	if named {
		j.cases.Add(P3)
	}
	switch {
	case !named:
		j.asked[c.Key] = asked{c.Print, c.Hash}
	case before.print != c.Print:
		j.broken(P3, key.stream(), 0, "the key %q was accepted with two different requests", c.Key)
	case before.hash != c.Hash:
		j.broken(P3, key.stream(), 0, "the key %q was answered with %s, and before with %s", c.Key, c.Hash, before.hash)
	}
}

// read checks P24: an acknowledged transaction is found, and its displayed status does not go
// back. A read may show the state at its beginning.
func (j *Judge) read(key Key, c Call) {
	l, past, over := j.find(key)
	if _, waits := j.acked[key]; l != nil || over || waits {
		j.cases.Add(P24)
	}
	switch {
	case over:
		missing := c.Missing && !past.retired && past.acked
		behind := !c.Missing && c.Status != past.status && c.Began.After(past.at.Add(j.s.Skew))
		if missing || behind {
			j.broken(P24, key.stream(), 0, "a read showed %q (missing %t), it had ended as %s", c.Status, c.Missing, past.status)
		}
	case l == nil:
		if at, yes := j.acked[key]; yes && c.Missing && c.Began.After(at) {
			j.broken(P24, key.stream(), 0, "a read begun %s after the acknowledgement found nothing", c.Began.Sub(at))
		}
	case c.Missing:
		if !l.ackedAt.IsZero() && c.Began.After(l.ackedAt) {
			j.broken(P24, key.stream(), 0, "a read begun %s after the acknowledgement found nothing", c.Began.Sub(l.ackedAt))
		}
	case l.known:
		j.forward(l, c)
	}
}

// forward looks up the shown status in the transaction's history, from the last status shown
// before.
func (j *Judge) forward(l *life, c Call) {
	from := shown{}
	if c.Began.After(l.seenAt) {
		from = l.seen
	}
	for _, s := range l.history {
		if s.status == c.Status && s.version >= from.version {
			if l.seenAt.IsZero() || s.version >= l.seen.version {
				l.seen, l.seenAt = s, c.Ended
			}
			return
		}
	}
	j.broken(P24, l.key.stream(), l.position, "a read showed %s; before it was %s, and it has been %v since", c.Status, orNothing(from.status), statuses(l.history))
}

func orNothing(s tx.Status) tx.Status {
	if s == tx.StatusAbsent {
		return "nothing"
	}
	return s
}

func statuses(history []shown) []tx.Status {
	all := make([]tx.Status, len(history))
	for i, s := range history {
		all[i] = s.status
	}
	return all
}
