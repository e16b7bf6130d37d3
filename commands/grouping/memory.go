package grouping

import (
	"container/list"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/group"
)

// memory remembers recent groups, so that a large group is not read again for each of its
// members. Beyond its bound it forgets the group that was kept the longest ago. The largest group
// does not count: a group of any size is remembered, and the other groups keep their room.
type memory struct {
	most    int // members of all groups but the largest
	groups  map[group.ID]*list.Element
	recent  *list.List // of *kept; the front was kept last
	members int        // of all groups
	largest *kept
}

// kept is a remembered group.
type kept struct {
	id     group.ID
	result commands.Result[group.State]
}

func (k *kept) size() int { return k.result.State.Members }

func newMemory(most int) *memory {
	return &memory{most: most, groups: map[group.ID]*list.Element{}, recent: list.New()}
}

func (m *memory) recall(id group.ID) commands.Result[group.State] {
	if e, known := m.groups[id]; known {
		return e.Value.(*kept).result
	}
	return commands.Result[group.State]{}
}

func (m *memory) keep(id group.ID, r commands.Result[group.State]) {
	e, known := m.groups[id]
	if known {
		m.recent.MoveToFront(e)
	} else {
		e = m.recent.PushFront(&kept{id: id})
		m.groups[id] = e
	}
	k := e.Value.(*kept)
	m.members += r.State.Members - k.size()
	k.result = r
	if m.largest == nil || k.size() > m.largest.size() {
		m.largest = k
	}
	for m.members-m.largest.size() > m.most { // ends at the latest when one group is left
		m.drop(m.recent.Back())
	}
}

// drop forgets a group.
func (m *memory) drop(e *list.Element) {
	k := m.recent.Remove(e).(*kept)
	delete(m.groups, k.id)
	m.members -= k.size()
	if m.largest != k {
		return
	}
	m.largest = nil
	for e := m.recent.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*kept); m.largest == nil || other.size() > m.largest.size() {
			m.largest = other
		}
	}
}
