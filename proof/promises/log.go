package promises

import (
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event judges the next event of the log.
func (j *Judge) Event(r eventlog.Recorded) []Violation {
	j.figures.Events++
	j.once(r)
	switch {
	case r.Stream == "":
		j.broken(P30, r.Stream, r.Position, "%s has no stream", r.Name)
	case strings.HasPrefix(string(r.Stream), tx.StreamPrefix):
		j.transaction(r)
	case strings.HasPrefix(string(r.Stream), group.StreamPrefix):
		j.member(r)
	default:
		last := j.others[r.Stream]
		j.dense(r, last.version)
		j.others[r.Stream] = other{r.Version, j.linked(r, last.tie)}
	}
	return j.tell()
}

// once checks the part of P25 that depends on the log alone: ids and positions.
func (j *Judge) once(r eventlog.Recorded) {
	if r.Position <= j.last {
		j.broken(P25, r.Stream, r.Position, "position %d follows %d", r.Position, j.last)
	}
	j.last = max(j.last, r.Position)
	j.found = append(j.found, j.tally(j.ids.Event(r))...)
}

// tally counts violations found by another checker.
func (j *Judge) tally(found []Violation) []Violation {
	for _, v := range found {
		j.figures.Broken[v.Promise]++
	}
	return found
}

// Unique checks the part of P25 about event ids. It remembers the ids selected by Share, so that
// several Unique can split a large log; nil selects all.
type Unique struct {
	Share func(eventlog.ID) bool
	ids   map[eventlog.ID]struct{}
}

// Event judges an event of the log.
func (u *Unique) Event(r eventlog.Recorded) []Violation {
	if u.Share != nil && !u.Share(r.ID) {
		return nil
	}
	if u.ids == nil {
		u.ids = map[eventlog.ID]struct{}{}
	}
	if _, twice := u.ids[r.ID]; twice {
		return []Violation{{P25, r.Stream, r.Position, "event id " + r.ID.String() + " was recorded before"}}
	}
	u.ids[r.ID] = struct{}{}
	return nil
}

// dense checks the part of P25 about a stream: versions rise by one.
func (j *Judge) dense(r eventlog.Recorded, last eventlog.Version) {
	if last > 0 {
		j.cases.Add(P25)
	}
	if r.Version != last+1 {
		j.broken(P25, r.Stream, r.Position, "version %d of %s follows %d", r.Version, r.Name, last)
	}
}

// tie is the state of a stream's links.
type tie struct {
	link  eventlog.Link // of the last event
	tight bool          // an event had a link, so all later ones must
}

// other is the state of a stream of another aggregate.
type other struct {
	version eventlog.Version
	tie     tie
}

// linked checks P31: an event's link covers it and the event before. Streams may begin with
// events from before links existed.
func (j *Judge) linked(r eventlog.Recorded, last tie) tie {
	switch {
	case !r.Meta.Link.IsZero():
		j.cases.Add(P31)
		if want := last.link.Next(r.Stream, r.Version, r.Event); r.Meta.Link != want {
			j.broken(P31, r.Stream, r.Position, "%s has the link %s, which does not match it and the event before it", r.Name, r.Meta.Link)
		}
	case last.tight || j.s.Linked:
		j.broken(P31, r.Stream, r.Position, "%s has no link", r.Name)
	}
	return tie{r.Linked(), last.tight || !r.Meta.Link.IsZero()}
}

func (j *Judge) transaction(r eventlog.Recorded) {
	id, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		j.broken(P30, r.Stream, r.Position, "%v", err)
		return
	}
	j.cases.Add(P30)
	e, err := j.codec.Decode(r.Name, r.Data)
	if err != nil {
		j.broken(P30, r.Stream, r.Position, "%v", err)
		e = nil
	}
	key := Key{id, hash}
	if past, ok := j.ended[key]; ok {
		j.dense(r, eventlog.Version(past.version))
		past.version, past.tie = uint32(r.Version), j.linked(r, past.tie)
		if e != nil {
			past = j.after(past, key, r, e)
		}
		j.ended[key] = past
		return
	}
	l := j.open[key]
	if l == nil {
		l = j.begin(key, r, e)
	} else {
		j.dense(r, l.version)
		l.version, l.tie = r.Version, j.linked(r, l.tie)
		if e != nil {
			j.live(l, r, e)
		}
	}
	l.newestAt = r.At
	if l.settled() {
		j.close(l, r)
	}
}

// begin handles the first event of a stream. By P3 it must be the only Accepted, and by P9 it
// must be about the stream's transaction.
func (j *Judge) begin(key Key, r eventlog.Recorded, e tx.Event) *life {
	j.dense(r, 0)
	l := &life{key: key, version: r.Version, tie: j.linked(r, tie{}), position: r.Position, status: tx.StatusQueued, at: r.At}
	j.open[key] = l
	j.figures.Transactions++
	a, ok := e.(tx.Accepted)
	if !ok {
		j.broken(P3, r.Stream, r.Position, "the stream begins with %s, not with its acceptance", r.Name)
		return l
	}
	if a.Chain != key.Chain || a.Hash != key.Hash {
		j.broken(P9, r.Stream, r.Position, "accepts %s on chain %s", a.Hash, a.Chain)
	}
	l.accepted, l.known = a, true
	l.show(r.Version)
	if a.RawHash != a.Hash {
		j.named[Key{key.Chain, a.RawHash}] = key
	}
	if at, waits := j.acked[key]; waits {
		l.ackedAt = at
		delete(j.acked, key)
	}
	return l
}

// close keeps the state of an ended transaction that later checks need.
func (j *Judge) close(l *life, r eventlog.Recorded) {
	j.cases.Add(P2)
	delete(j.open, l.key)
	if l.known && l.accepted.RawHash != l.accepted.Hash {
		delete(j.named, Key{l.key.Chain, l.accepted.RawHash})
	}
	j.ended[l.key] = ended{
		version: uint32(l.version), tie: l.tie, status: l.status, verdict: l.verdict, at: r.At,
		canceled: l.canceled, sealed: l.sealed, erased: l.erased, retired: l.retired, violated: l.violated,
		grouped: l.accepted.Group != nil, joined: l.joined, acked: !l.ackedAt.IsZero(), pending: l.pending(),
	}
}

// roll is the judge's state of a group: the members that joined and are not canceled, in order.
type roll struct {
	version  eventlog.Version
	tie      tie
	key      chain.NonceKey
	joined   int
	canceled int   // number of canceled members, the first ones
	rest     []Key // members that joined after the canceled ones
	shown    map[chain.Hash]bool
	owed     map[Key]eventlog.Recorded // canceled with the group, but not by an event of their own yet
}

func (j *Judge) member(r eventlog.Recorded) {
	id, err := group.ParseStream(r.Stream)
	if err != nil {
		j.broken(P30, r.Stream, r.Position, "%v", err)
		return
	}
	g := j.group[id]
	if g == nil {
		g = &roll{shown: map[chain.Hash]bool{}, owed: map[Key]eventlog.Recorded{}}
		j.group[id] = g
	}
	j.dense(r, g.version)
	g.version, g.tie = r.Version, j.linked(r, g.tie)
	e, err := j.groups.Decode(r.Name, r.Data)
	if err != nil {
		j.broken(P30, r.Stream, r.Position, "%v", err)
		return
	}
	switch e := e.(type) {
	case group.Joined:
		j.join(g, id, r, e)
	case group.Canceled:
		j.cancelGroup(g, r, e)
	}
}

// join checks P3 for groups: a member was accepted, is of this group, and joins once.
func (j *Judge) join(g *roll, id group.ID, r eventlog.Recorded, e group.Joined) {
	key := Key{e.Chain, e.Hash}
	j.cases.Add(P3)
	g.joined++
	g.rest = append(g.rest, key)
	if g.joined == 1 {
		g.key = e.NonceKey
	}
	if e.Chain != id.Chain || e.Sender != id.Sender || e.Group != id.Group || e.NonceKey != g.key {
		j.broken(P3, r.Stream, r.Position, "%s joins with nonce key %s, the group's is %s", e.Hash, e.NonceKey, g.key)
	}
	past, over := j.ended[key]
	switch l := j.open[key]; {
	case l != nil:
		if l.joined {
			j.broken(P3, r.Stream, r.Position, "%s joins again", e.Hash)
		}
		l.joined = true
		if l.known && l.accepted.Sender != e.Sender {
			j.broken(P3, r.Stream, r.Position, "%s is of %s", e.Hash, l.accepted.Sender)
		}
	case over:
		if past.joined {
			j.broken(P3, r.Stream, r.Position, "%s joins again", e.Hash)
		}
		past.joined = true
		j.ended[key] = past
	default:
		j.broken(P3, r.Stream, r.Position, "%s joins, which was never accepted", e.Hash)
	}
}

// cancelGroup checks P23 for groups: a cancel covers existing members, and a signature counts
// once.
func (j *Judge) cancelGroup(g *roll, r eventlog.Recorded, e group.Canceled) {
	if e.Members > g.joined || e.Members < g.canceled {
		j.broken(P23, r.Stream, r.Position, "%d members are canceled, of %d, %d of whom were", e.Members, g.joined, g.canceled)
		return
	}
	if e.By.Form == group.FormTyped {
		if g.shown[e.By.Digest] {
			j.broken(P23, r.Stream, r.Position, "the authorization %s was used before", e.By.Digest)
		}
		g.shown[e.By.Digest] = true
	}
	n := e.Members - g.canceled
	for _, key := range g.rest[:n] {
		if l := j.open[key]; l != nil && !l.canceled && l.status != tx.StatusInvalid {
			g.owed[key] = r
			l.canceledBy = g
		}
	}
	g.rest = append([]Key(nil), g.rest[n:]...)
	g.canceled = e.Members
}
