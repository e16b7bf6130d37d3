package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// batch decides appends one after the other and collects the rows of the accepted ones. It does
// no IO: its input has been read under the head row's lock.
type batch struct {
	head  int64 // the last position assigned
	tails map[eventlog.Stream]*tail
	grown []*tail // in the order of their first append in this batch

	pos, stream, version   []int64
	id                     []pgtype.UUID
	name                   []string
	data                   [][]byte
	correlation, causation []pgtype.UUID
	actor, trace           []string
	link                   [][]byte
}

// tail is the end of a stream.
type tail struct {
	name    eventlog.Stream
	no      int64            // position of its first event; 0: the stream does not exist yet
	last    int64            // position of its last event
	version eventlog.Version // including the events of this batch
	stored  eventlog.Version // version in the database
	added   []place          // events added by this batch: versions stored+1 ..
}

// place is an event's id and position.
type place struct {
	id  eventlog.ID
	pos int64
}

func newBatch(head int64) *batch {
	return &batch{head: head, tails: map[eventlog.Stream]*tail{}}
}

// tail returns a stream's tail. The stream does not exist unless the database has returned it.
func (b *batch) tail(name eventlog.Stream) *tail {
	t := b.tails[name]
	if t == nil {
		t = &tail{name: name}
		b.tails[name] = t
	}
	return t
}

// decide answers an append and collects its rows if it is accepted.
func (b *batch) decide(p *pending) {
	t := b.tail(p.stream)
	if p.expected == t.version {
		b.add(t, p.events)
		p.answer.appended = eventlog.Appended{Version: t.version, Position: eventlog.Position(t.last)}
		return
	}
	if at, ok := t.repeats(p); ok {
		p.answer.appended = eventlog.Appended{
			Version:  p.expected + eventlog.Version(len(p.events)),
			Position: eventlog.Position(at),
			Repeated: true,
		}
		return
	}
	p.answer.err = &eventlog.ConflictError{Stream: p.stream, Expected: p.expected, Actual: t.version}
}

// repeats reports whether an append's events are stored already at the expected versions, and
// the position of its last event.
func (t *tail) repeats(p *pending) (at int64, ok bool) {
	count := eventlog.Version(len(p.events))
	if p.expected > t.version || t.version-p.expected < count {
		return 0, false
	}
	for i, e := range p.events {
		var stands place
		switch v := p.expected + 1 + eventlog.Version(i); {
		case v > t.stored:
			stands = t.added[v-t.stored-1]
		case i < len(p.standing):
			stands = p.standing[i]
		default: // the database lacks events that the stream's version counts
			return 0, false
		}
		if stands.id != e.ID {
			return 0, false
		}
		at = stands.pos
	}
	return at, true
}

func (b *batch) add(t *tail, events []eventlog.Event) {
	if len(t.added) == 0 {
		b.grown = append(b.grown, t)
	}
	for _, e := range events {
		b.head++
		t.version++
		if t.no == 0 {
			t.no = b.head
		}
		t.last = b.head
		t.added = append(t.added, place{e.ID, b.head})

		b.pos = append(b.pos, b.head)
		b.stream = append(b.stream, t.no)
		b.version = append(b.version, int64(t.version))
		b.id = append(b.id, pgtype.UUID{Bytes: e.ID, Valid: true})
		b.name = append(b.name, e.Name)
		b.data = append(b.data, notNull(e.Data))
		b.correlation = append(b.correlation, pgtype.UUID{Bytes: e.Meta.Correlation, Valid: !e.Meta.Correlation.IsZero()})
		b.causation = append(b.causation, pgtype.UUID{Bytes: e.Meta.Causation, Valid: !e.Meta.Causation.IsZero()})
		b.actor = append(b.actor, e.Meta.Actor)
		b.trace = append(b.trace, e.Meta.Trace)
		b.link = append(b.link, linkOrNull(e.Meta.Link))
	}
}

// notNull keeps empty bytes from becoming NULL.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func linkOrNull(link eventlog.Link) []byte {
	if link.IsZero() {
		return nil
	}
	return link[:]
}

// streams are the columns of log.streams rows to insert or to update.
func (b *batch) streams(fresh bool) (no, version, last []int64, name []string) {
	for _, t := range b.grown {
		if (t.stored == 0) == fresh {
			no, version, last = append(no, t.no), append(version, int64(t.version)), append(last, t.last)
			name = append(name, string(t.name))
		}
	}
	return no, version, last, name
}
