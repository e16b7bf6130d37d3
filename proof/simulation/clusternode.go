package simulation

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// errPosition refuses a read of the log from a position at which no record begins.
var errPosition = errors.New("simulated cluster: invalid position")

// lookup finds the leader: the named node, or else the leader according to a living node. It
// fails unless that node leads.
func (c *cluster) lookup(named int) (node int, err error) {
	if named == 0 {
		if named = c.gossip(); named == 0 {
			return 0, esdbcluster.ErrGone
		}
	}
	_, err = c.model.View(named, true)
	return named, err
}

// gossip is the leader according to one of the living nodes, or else that node; 0 if all are
// dead.
func (c *cluster) gossip() int {
	for _, i := range c.world.agenda.rand.Perm(c.plan.Nodes) {
		members := c.model.Members(i + 1)
		if members[i].State == esdbcluster.Dead {
			continue
		}
		for _, m := range members {
			if m.State == esdbcluster.Leader {
				return m.Node
			}
		}
		return i + 1
	}
	return 0
}

func proposals(events []esdb.EventData) (all []esdbcluster.Proposal) {
	for _, e := range events {
		all = append(all, esdbcluster.Proposal{ID: e.EventID, Kind: e.EventType, Content: "application/json", Data: e.Data, Meta: e.Metadata})
	}
	return all
}

func recordedEvents(records []*esdbcluster.Record) (all []*esdb.RecordedEvent) {
	for _, r := range records {
		all = append(all, recordedEvent(r))
	}
	return all
}

func recordedEvent(r *esdbcluster.Record) *esdb.RecordedEvent {
	return &esdb.RecordedEvent{
		EventID: uuid.UUID(r.ID), EventType: r.Kind, ContentType: r.Content, StreamID: r.Stream, EventNumber: r.Revision,
		Position:    esdb.Position{Commit: r.Position, Prepare: r.Position},
		CreatedDate: time.Unix(0, r.Created*100).UTC(), Data: r.Data, UserMetadata: r.Meta,
	}
}

// streamOf reads a stream as a node shows it.
func streamOf(v esdbcluster.View, stream string, o esdb.ReadStreamOptions, count uint64) []*esdbcluster.Record {
	records := v.Stream(stream)
	length := uint64(len(records))
	from := uint64(0)
	switch at := o.From.(type) {
	case esdb.StreamRevision:
		from = at.Value
	case esdb.End:
		from = max(length, 1) - 1
	}
	if o.Direction == esdb.Forwards {
		records = records[min(from, length):]
		return records[:min(count, uint64(len(records)))]
	}
	records = slices.Clone(records[:min(from+1, length)])
	slices.Reverse(records)
	return records[:min(count, uint64(len(records)))]
}

// place is the index at which a read of the log starts. A position between records is refused. A
// position beyond the view is allowed if another node has a record there.
func (c *cluster) place(v esdbcluster.View, from esdb.AllPosition) (place int, exact bool, err error) {
	switch at := from.(type) {
	case esdb.End:
		return len(v.All()), false, nil
	case esdb.Position:
		if place, exact = v.Find(at.Commit); !exact && place == len(v.All()) {
			exact = c.model.Has(at.Commit)
		}
		if !exact {
			return 0, false, errPosition
		}
	}
	return place, exact, nil
}

// logOf reads the log as a node shows it: from a position, including its record; backwards,
// before the position.
func (c *cluster) logOf(v esdbcluster.View, o esdb.ReadAllOptions, count uint64) ([]*esdbcluster.Record, error) {
	place, _, err := c.place(v, o.From)
	if err != nil {
		return nil, err
	}
	records := v.All()
	if o.Direction == esdb.Forwards {
		records = records[place:]
		return records[:min(count, uint64(len(records)))], nil
	}
	records = slices.Clone(records[max(0, place-int(count)):place]) //nolint:gosec // pages are small
	slices.Reverse(records)
	return records, nil
}

// following is a subscription to the log at a node.
type following struct {
	*esdbcluster.Subscription
	passes func(*esdbcluster.Record) bool
	every  int             // records between two checkpoints
	looked int             // records so far
	more   <-chan struct{} // closed when there may be new records; nil before the first read
}

// follow starts a subscription at a node.
func (c *cluster) follow(node int, o esdb.SubscribeToAllOptions) (*following, error) {
	v, err := c.model.View(node, true)
	if err != nil {
		return nil, err
	}
	place, exact, err := c.place(v, o.From)
	if err != nil {
		return nil, err
	}
	from := uint64(0)
	switch at, is := o.From.(esdb.Position); {
	case is && exact:
		from = at.Commit + 1
	case place > 0:
		from = v.All()[place-1].Position + 1
	}
	f := &following{passes: passes(o.Filter), every: o.MaxSearchWindow * o.CheckpointInterval}
	f.Subscription, err = c.model.Subscribe(node, true, from, f.passes)
	return f, err
}

// passes converts a subscription's filter to a function.
func passes(f *esdb.SubscriptionFilter) func(*esdbcluster.Record) bool {
	if f == nil {
		return func(*esdbcluster.Record) bool { return true }
	}
	name := func(r *esdbcluster.Record) string { return r.Kind }
	if f.Type == esdb.StreamFilterType {
		name = func(r *esdbcluster.Record) string { return r.Stream }
	}
	if f.Regex != "" {
		pattern := regexp.MustCompile(f.Regex)
		return func(r *esdbcluster.Record) bool { return pattern.MatchString(name(r)) }
	}
	return func(r *esdbcluster.Record) bool {
		return slices.ContainsFunc(f.Prefixes, func(p string) bool { return strings.HasPrefix(name(r), p) })
	}
}

// ready reports whether the node may have new records.
func (f *following) ready() bool {
	if f.more == nil {
		return true
	}
	select {
	case <-f.more:
		return true
	default:
		return false
	}
}

// takeMost is the maximum number of records in one answer.
const takeMost = 64

// take returns the node's next notifications, and the error that ends the subscription after
// them.
func (f *following) take() (all []eventstoredb.Notification, err error) {
	for took := 0; took < takeMost; {
		news, err := f.Next(takeMost)
		switch {
		case err != nil:
			return all, err
		case news.CaughtUp:
			all = append(all, eventstoredb.Notification{CaughtUp: true})
		case news.More != nil:
			f.more = news.More
			return all, nil
		}
		took += len(news.Records)
		for _, r := range news.Records {
			all = append(all, f.notifications(r)...)
		}
	}
	f.more = nil
	return all, nil
}

// notifications are the node's messages for a record: the record if it passes, and a checkpoint
// if one is due.
func (f *following) notifications(r *esdbcluster.Record) (all []eventstoredb.Notification) {
	at := eventlog.Position(r.Position)
	if f.passes(r) {
		all = append(all, eventstoredb.Notification{Event: recordedEvent(r), At: at})
	}
	if f.looked++; f.every > 0 && f.looked%f.every == 0 {
		all = append(all, eventstoredb.Notification{At: at})
	}
	return all
}
