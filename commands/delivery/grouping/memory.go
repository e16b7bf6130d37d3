package grouping

import (
	"container/list"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

const (
	// entrySize is the memory that a remembered group takes beside its members, in members.
	entrySize = 8
	// fullMax bounds the full groups that are remembered. They have at least a thousand million
	// members together.
	fullMax = 10_000
)

// memory remembers recent groups, so that a group is not read again for each batch of members.
// Beyond its bound, the client with the largest share of the memory loses a group, so that a
// client with many groups evicts no other client's. It loses the group that was used the longest
// ago. If the present batch uses all of the client's groups, it loses the group that was used
// last: evicting the oldest would read each of them again in every batch.
//
// Of a full group only the id is remembered, because no transaction joins it.
type memory struct {
	most    int // bounds size
	size    int // of all groups
	groups  map[group.ID]*list.Element
	clients map[string]*share
	batch   uint64 // number of the present batch
	full    map[group.ID]bool
}

// share is one client's part of the memory.
type share struct {
	recent *list.List // of *kept; the front was used last
	size   int
}

// kept is a remembered group.
type kept struct {
	id     group.ID
	client string // the client whose transaction joined when the group was first remembered
	result handler.Result[group.State]
	batch  uint64 // the last batch that used the group
	since  int    // events that the grouper appended since it last stored a snapshot
}

func sizeOf(r handler.Result[group.State]) int { return r.State.Members + entrySize }

func newMemory(most int) *memory {
	return &memory{most: most, groups: map[group.ID]*list.Element{}, clients: map[string]*share{}, full: map[group.ID]bool{}}
}

// begin starts a batch that uses these groups.
func (m *memory) begin(ids []group.ID) {
	m.batch++
	for _, id := range ids {
		if e, known := m.groups[id]; known {
			k := e.Value.(*kept)
			k.batch = m.batch
			m.clients[k.client].recent.MoveToFront(e)
		}
	}
}

// recall returns a group, or the zero kept if it is not remembered.
func (m *memory) recall(id group.ID) kept {
	if e, known := m.groups[id]; known {
		return *e.Value.(*kept)
	}
	return kept{}
}

// keep remembers a group after a transaction of a client joined it.
func (m *memory) keep(id group.ID, client string, r handler.Result[group.State]) {
	e, known := m.groups[id]
	if !known {
		of := m.clients[client]
		if of == nil {
			of = &share{recent: list.New()}
			m.clients[client] = of
		}
		e = of.recent.PushFront(&kept{id: id, client: client})
		m.groups[id] = e
		m.grow(of, entrySize)
	}
	k := e.Value.(*kept)
	of := m.clients[k.client]
	of.recent.MoveToFront(e)
	m.grow(of, sizeOf(r)-sizeOf(k.result))
	k.result, k.batch, k.since = r, m.batch, k.since+r.Added
	for m.size > m.most {
		m.evict()
	}
}

func (m *memory) grow(of *share, by int) {
	of.size += by
	m.size += by
}

// evict forgets a group of the client with the largest share.
func (m *memory) evict() {
	var largest *share
	var largestOf string
	for client, of := range m.clients {
		if largest == nil || of.size > largest.size || of.size == largest.size && client < largestOf {
			largest, largestOf = of, client
		}
	}
	e := largest.recent.Back()
	if e.Value.(*kept).batch == m.batch {
		e = largest.recent.Front()
	}
	m.drop(e)
}

func (m *memory) drop(e *list.Element) {
	k := e.Value.(*kept)
	of := m.clients[k.client]
	of.recent.Remove(e)
	delete(m.groups, k.id)
	m.grow(of, -sizeOf(k.result))
	if of.recent.Len() == 0 {
		delete(m.clients, k.client)
	}
}

// saved notes that a snapshot of the group was stored.
func (m *memory) saved(id group.ID) {
	if e, known := m.groups[id]; known {
		e.Value.(*kept).since = 0
	}
}

// fill remembers that a group is full, and forgets its members. It reports whether that is new.
func (m *memory) fill(id group.ID) bool {
	if m.full[id] {
		return false
	}
	if len(m.full) >= fullMax {
		clear(m.full)
	}
	m.full[id] = true
	if e, known := m.groups[id]; known {
		m.drop(e)
	}
	return true
}
