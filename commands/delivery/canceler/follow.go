package canceler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// Reader is the name of the process manager's checkpoint and lease.
const Reader = "canceler"

const (
	followMax    = 500    // events per batch
	followGroups = 8      // groups handled concurrently
	groupsMax    = 10_000 // groups remembered
)

// catching is the process manager's memory while it holds its lease.
type catching struct {
	*Canceler

	mu     sync.Mutex
	groups map[group.ID]remembered
}

// remembered is what the process manager remembers of a group.
type remembered struct {
	last eventlog.Position // of the last cancel; 0 if there is none
	// finished is the number of the first members in which no cancel changes anything any more.
	finished int
}

// Run finishes recorded cancels until ctx ends or the store fails. One replica at a time
// should run it; a second one would add nothing.
func (c *Canceler) Run(ctx context.Context) error {
	f := follower.Follower{
		Store: c.Store, Checkpoints: c.Checkpoints, Reader: Reader, Max: followMax, Moved: c.Moved,
		Filter: eventlog.Filter{Names: []string{"group.canceled.", "group.joined."}},
	}
	memory := &catching{Canceler: c, groups: map[group.ID]remembered{}}
	return f.Run(ctx, memory.handle)
}

// task is a group's part of a batch, in the order of the log.
type task struct {
	id    group.ID
	steps []step
	late  bool // a transaction joined by an access key
}

// step is an event to handle.
type step struct {
	recorded eventlog.Recorded
	fact     group.Event
}

// handle handles a batch: several groups at once, each group's events in order. Groups that a
// transaction joined late go first: no other process cancels that transaction.
func (f *catching) handle(ctx context.Context, events []eventlog.Recorded) error {
	tasks, err := f.tasks(events)
	if err != nil {
		return err
	}
	stuck := make([]*eventlog.Stuck, len(tasks))
	err = commands.Each(len(tasks), followGroups, func(i int) error {
		for _, s := range tasks[i].steps {
			if err := f.follow(ctx, tasks[i].id, s); err != nil {
				stuck[i] = &eventlog.Stuck{At: s.recorded.Position, Err: err}
				return err
			}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	var first *eventlog.Stuck // events before it can be handled
	for _, s := range stuck {
		if s != nil && (first == nil || s.At < first.At) {
			first = s
		}
	}
	return first
}

// tasks returns the groups of a batch with the events that need work.
func (f *catching) tasks(events []eventlog.Recorded) ([]*task, error) {
	known := map[eventlog.Stream]*task{}
	var tasks []*task
	for _, recorded := range events {
		fact, err := f.Groups.Codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return nil, &eventlog.Stuck{At: recorded.Position, Err: err}
		}
		joined, isJoined := fact.(group.Joined)
		if isJoined && joined.AccessKey == nil {
			continue // it joined before the cancel was recorded
		}
		t := known[recorded.Stream]
		if t == nil {
			id, err := group.ParseStream(recorded.Stream)
			if err != nil {
				return nil, &eventlog.Stuck{At: recorded.Position, Err: err}
			}
			t = &task{id: id}
			known[recorded.Stream] = t
			tasks = append(tasks, t)
		}
		t.steps = append(t.steps, step{recorded, fact})
		t.late = t.late || isJoined
	}
	late := slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return !t.late })
	return append(late, slices.DeleteFunc(tasks, func(t *task) bool { return t.late })...), nil
}

// grace is how long the recorder of a cancel may finish it alone. Two processes on it would
// cause conflicts.
const grace = time.Second

func (f *catching) follow(ctx context.Context, id group.ID, s step) error {
	recorded := s.recorded
	meta := eventlog.Meta{Correlation: recorded.Meta.Correlation, Causation: recorded.ID, Actor: Reader, Trace: recorded.Meta.Trace}
	switch e := s.fact.(type) {
	case group.Canceled:
		finished := f.noteCancel(id, recorded.Position)
		if finished >= e.Members {
			return nil // an earlier cancel has finished these members
		}
		// The event's time is the store's: if this clock is behind, the pause must not
		// exceed grace.
		if err := pause.For(ctx, min(recorded.At.Add(grace).Sub(f.Now()), grace)); err != nil {
			return err
		}
		r, err := f.Groups.Load(ctx, recorded.Stream)
		if err != nil {
			return err
		}
		found := canceled(r.State)[finished:]
		return f.carry(ctx, run{id: id, found: found, meta: meta, see: f.progress(id, finished, len(found))})
	case group.Joined:
		return f.late(ctx, id, e, meta)
	}
	return nil
}

// noteCancel remembers a group's last cancel, and returns the number of the group's first members
// that are finished.
func (f *catching) noteCancel(id group.ID, at eventlog.Position) (finished int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.groups[id]
	r.last = at
	f.remember(id, r)
	return r.finished
}

// progress returns a function that sees the states of a group's members behind the first ones,
// which are finished. It remembers how many of the first members are finished by then, so that
// neither a later cancel nor another try after an error visits them again.
func (f *catching) progress(id group.ID, first, members int) func(i int, s tx.State) {
	done, next := make([]bool, members), 0
	return func(i int, s tx.State) {
		if done[i] = finished(s); i != next || !done[i] {
			return
		}
		for next < members && done[next] {
			next++
		}
		f.finish(id, first+next)
	}
}

// finish remembers that a group's first members are finished.
func (f *catching) finish(id group.ID, members int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, known := f.groups[id]; known { // without the last cancel's position nothing is remembered
		r.finished = members
		f.groups[id] = r
	}
}

// remember keeps a group's entry. The caller holds mu.
func (f *catching) remember(id group.ID, r remembered) {
	if _, known := f.groups[id]; !known && len(f.groups) >= groupsMax {
		clear(f.groups)
	}
	f.groups[id] = r
}

// finished reports whether no cancel changes anything in the member any more. An invalid member
// is not finished: if a block has it all the same, a cancel marks it until the block is final.
func finished(s tx.State) bool {
	return s.Canceled && s.Erased || s.Sealed || s.Violated
}

// late cancels a transaction that was accepted before its group was canceled and joined
// after that, because the chain had to confirm its key first.
func (f *catching) late(ctx context.Context, id group.ID, joined group.Joined, meta eventlog.Meta) error {
	last, err := f.lastCancel(ctx, id)
	if err != nil || last == 0 {
		return err
	}
	for e, err := range f.Store.ReadStream(ctx, tx.Stream(id.Chain, joined.Hash), 0) {
		if err != nil {
			return err
		}
		if e.Position > last {
			return nil // accepted later: the cancel does not cover it
		}
		break
	}
	found := []group.Member{{Hash: joined.Hash, Nonce: joined.Nonce}}
	return f.carry(ctx, run{id: id, found: found, meta: meta, see: func(int, tx.State) {}})
}

func (f *catching) lastCancel(ctx context.Context, id group.ID) (eventlog.Position, error) {
	f.mu.Lock()
	r, known := f.groups[id]
	f.mu.Unlock()
	if known {
		return r.last, nil
	}
	var last eventlog.Position
	for e, err := range f.Store.ReadStream(ctx, id.Stream(), 0) {
		if err != nil {
			return 0, err
		}
		fact, err := f.Groups.Codec.Decode(e.Name, e.Data)
		if err != nil {
			return 0, err
		}
		if _, ok := fact.(group.Canceled); ok {
			last = e.Position
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(id, remembered{last: last})
	return last, nil
}
