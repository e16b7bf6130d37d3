package esdbtest

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// record is an event as the server keeps it.
type record struct {
	Stream   string
	Revision uint64
	Position uint64
	ID       [16]byte
	Kind     string // the event's type
	Content  string // its content type
	Created  int64  // in ticks of 100 ns since 1970
	Data     []byte
	Meta     []byte
}

// Data is what a server, or the nodes of a cluster, keep. It is safe for use by several
// goroutines.
type Data struct {
	now  func() time.Time
	file *file // nil keeps nothing for later

	mu      sync.RWMutex
	all     []*record
	streams map[string][]*record
	next    uint64        // the position of the next record
	news    chan struct{} // closed by the next write
	noise   int           // appends since the last event of the server's own
}

// noiseEvery is how many appends there are between two events that the server writes on
// its own, as a real one writes its statistics.
const noiseEvery = 7

// NewData keeps everything in memory.
func NewData(now func() time.Time) *Data {
	d := &Data{now: now, streams: map[string][]*record{}, news: make(chan struct{})}
	for _, stream := range []string{"$settings", "$users", "$scavenges"} {
		records, _ := d.records(d.next, stream, []proposal{{kind: "$made", content: "application/json", data: []byte("{}")}})
		d.keep(records)
	}
	return d
}

// proposal is an event to be appended.
type proposal struct {
	id            [16]byte
	kind, content string
	data, meta    []byte
}

// expectation is what an append expects of its stream.
type expectation struct {
	kind     expects
	revision uint64
}

type expects int

const (
	expectRevision expects = iota
	expectNoStream
	expectAny
	expectStream
)

// outcome is what came of an append: where its last event stands, or where the stream
// does instead; a stream that is not there has no last.
type outcome struct {
	wrong bool
	last  *record
}

// append writes events to a stream that is as expected. Those that stand there already,
// by their ids and in their order, are not written again.
func (d *Data) append(stream string, e expectation, events []proposal) (outcome, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stands := d.streams[stream]
	at := len(stands)
	switch e.kind {
	case expectRevision:
		at = -1
		if e.revision < uint64(len(stands)) {
			at = int(e.revision) + 1
		}
	case expectNoStream:
		at = 0
	case expectStream:
		if len(stands) == 0 {
			at = -1
		}
	}
	if at == len(stands) {
		written, err := d.write(stream, events)
		return outcome{last: written}, err
	}
	if at >= 0 && same(stands[at:], events) {
		return outcome{last: stands[at+len(events)-1]}, nil
	}
	if len(stands) == 0 {
		return outcome{wrong: true}, nil
	}
	return outcome{wrong: true, last: stands[len(stands)-1]}, nil
}

// same reports whether records are these events, and perhaps more.
func same(stands []*record, events []proposal) bool {
	return len(stands) >= len(events) && len(events) > 0 &&
		slices.EqualFunc(stands[:len(events)], events, func(r *record, p proposal) bool { return r.ID == p.id })
}

// write adds events, and those of the server's own that are due, to the file first.
func (d *Data) write(stream string, events []proposal) (*record, error) {
	records, next := d.records(d.next, stream, events)
	if d.noise++; d.noise%noiseEvery == 0 {
		stats, _ := d.records(next, "$stats-0.0.0.0:2113", []proposal{{kind: "$statsCollected", content: "application/json", data: []byte("{}")}})
		records = append(records, stats...)
	}
	if d.file != nil {
		if err := d.file.write(records); err != nil {
			return nil, err
		}
	}
	d.keep(records)
	close(d.news)
	d.news = make(chan struct{})
	if len(events) == 0 {
		return nil, nil
	}
	return records[len(events)-1], nil
}

// recordBytes is about what a record takes in a real server's log beside its texts; so
// positions have gaps, and no number between two is one.
const recordBytes = 96

// records makes events of one stream into records, from a position on.
func (d *Data) records(position uint64, stream string, events []proposal) (records []*record, next uint64) {
	for i, e := range events {
		r := &record{
			Stream: stream, Revision: uint64(len(d.streams[stream]) + i), Position: position,
			ID: e.id, Kind: e.kind, Content: e.content, Created: d.now().UnixNano() / 100, Data: e.data, Meta: e.meta,
		}
		records, position = append(records, r), r.end()
	}
	return records, position
}

// end is where the next record begins.
func (r *record) end() uint64 {
	return r.Position + recordBytes + uint64(len(r.Stream)+2*len(r.Kind)+len(r.Data)+len(r.Meta))
}

// keep makes records part of the log. They are in the order of their positions.
func (d *Data) keep(records []*record) {
	for _, r := range records {
		d.all = append(d.all, r)
		d.streams[r.Stream] = append(d.streams[r.Stream], r)
		d.next = r.end()
	}
}

// find is the place in the log of the first record at or above a position; exact says
// that there is one at it.
func (d *Data) find(position uint64) (i int, exact bool) {
	i, exact = slices.BinarySearchFunc(d.all, position, func(r *record, p uint64) int {
		switch {
		case r.Position < p:
			return -1
		case r.Position > p:
			return 1
		}
		return 0
	})
	return i, exact
}

// Events is how many events of its users the server has.
func (d *Data) Events() (n int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, r := range d.all {
		if r.Stream[0] != '$' {
			n++
		}
	}
	return n
}

// structured is an id as the protocol carries it.
func structured(id [16]byte) (most, least int64) {
	return int64(binary.BigEndian.Uint64(id[:8])), int64(binary.BigEndian.Uint64(id[8:]))
}

// Metadata is what an event's writer said of it.
func (d *Data) Metadata(stream string, revision int) []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.streams[stream][revision].Meta
}
