package audit

import (
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Draft collects the events since the last seal for the next one.
type Draft struct {
	last    Sealed
	through eventlog.Position
	count   uint64
	hash    Digest
	marks   []byte
	news    bool // it has events other than seals
}

// After returns the draft of the seal after the state's last.
func (s State) After() *Draft {
	return &Draft{last: s.Last, through: s.Last.Through, count: s.Last.Count, hash: s.Last.Hash}
}

// Add adds the next event of the log.
func (d *Draft) Add(r eventlog.Recorded) {
	leaf := Leaf(r)
	mark := leaf.Mark()
	d.through, d.count, d.hash = r.Position, d.count+1, d.hash.Next(leaf)
	d.marks = append(d.marks, mark[:]...)
	d.news = d.news || r.Stream != Stream
}

// Through returns the position of the last added event.
func (d *Draft) Through() eventlog.Position { return d.through }

// Len returns the number of events since the last seal.
func (d *Draft) Len() int { return len(d.marks) / MarkBytes }

// News reports whether a new seal is needed: a seal alone needs no other.
func (d *Draft) News() bool { return d.news }

// Sealed returns the signed seal of the added events.
func (d *Draft) Sealed(by Signer, at time.Time) Sealed {
	return by.Sign(Sealed{
		Since: d.last.Through, Through: d.through, Count: d.count, Hash: d.hash,
		Marks: d.marks, At: at.UTC().Truncate(time.Microsecond),
	})
}
