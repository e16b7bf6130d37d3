package esdbtest

import (
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// Data is the committed log. A server that is made with it goes on where the last one
// ended; one server or cluster at a time may have it. It is safe for use by several
// goroutines.
type Data struct {
	file *file // nil: in memory only

	mu      sync.RWMutex
	writes  [][]*esdbcluster.Record
	events  int // in streams that are not the server's own
	streams map[string][]*esdbcluster.Record
}

// NewData returns an empty log in memory.
func NewData(now func() time.Time) *Data {
	d := &Data{streams: map[string][]*esdbcluster.Record{}}
	d.add(esdbcluster.FirstWrite(now()))
	return d
}

// keep stores a committed write, in the file first.
func (d *Data) keep(records []*esdbcluster.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		if err := d.file.write(records); err != nil {
			return err
		}
	}
	d.add(records)
	return nil
}

func (d *Data) add(records []*esdbcluster.Record) {
	d.writes = append(d.writes, records)
	for _, r := range records {
		d.streams[r.Stream] = append(d.streams[r.Stream], r)
		if r.Stream[0] != '$' {
			d.events++
		}
	}
}

// kept returns the writes so far.
func (d *Data) kept() [][]*esdbcluster.Record {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.writes[:len(d.writes):len(d.writes)]
}

// Events returns the number of committed events in streams that are not the server's own.
func (d *Data) Events() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.events
}

// Metadata returns an event's metadata as the client wrote it.
func (d *Data) Metadata(stream string, revision int) []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.streams[stream][revision].Meta
}
