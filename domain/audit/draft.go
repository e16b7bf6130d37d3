package audit

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Draft is a seal in the making: what has come since the last one.
type Draft struct {
	last    Sealed
	through event.Position
	count   uint64
	hash    Digest
	marks   []byte
	news    bool // not only seals have come
}

// After is the draft of the seal that follows a state's last.
func (s State) After() *Draft {
	return &Draft{last: s.Last, through: s.Last.Through, count: s.Last.Count, hash: s.Last.Hash}
}

// Add takes in the next event of the log.
func (d *Draft) Add(r event.Recorded) {
	leaf := Leaf(r)
	mark := leaf.Mark()
	d.through, d.count, d.hash = r.Position, d.count+1, d.hash.Next(leaf)
	d.marks = append(d.marks, mark[:]...)
	d.news = d.news || r.Stream != Stream
}

// Through is the position of the last event that was taken in.
func (d *Draft) Through() event.Position { return d.through }

// Len is how many events have come since the last seal.
func (d *Draft) Len() int { return len(d.marks) / MarkBytes }

// News reports whether there is something to witness: a seal alone calls for no other.
func (d *Draft) News() bool { return d.news }

// Sealed is the seal of what has come.
func (d *Draft) Sealed(by Signer, at time.Time) Sealed {
	return by.Sign(Sealed{
		Since: d.last.Through, Through: d.through, Count: d.count, Hash: d.hash,
		Marks: d.marks, At: at.UTC().Truncate(time.Microsecond),
	})
}
