package esdbtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// Read serves reads of a stream and of the log, and subscriptions to the log.
func (s *Server) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	if err := errors.Join(s.allowed(call.Context()), s.trouble.delay(call.Context()), s.trouble.cancelRead()); err != nil {
		return err
	}
	out := &sender{call: call, left: s.trouble.cutAfter()}
	o := req.GetOptions()
	switch {
	case o.GetStream() != nil && o.GetSubscription() != nil:
		return status.Error(codes.Unimplemented, "this double has no subscriptions to a stream")
	case o.GetSubscription() == nil && o.GetFilter() != nil:
		return status.Error(codes.Unimplemented, "this double filters subscriptions only")
	}
	view, err := s.cluster.Model.View(s.number, requiresLeader(call.Context()))
	switch {
	case err != nil:
		return s.refused(err, call)
	case o.GetStream() != nil:
		return readStream(view, o, out)
	case o.GetSubscription() != nil:
		return s.subscribe(view, o, out)
	}
	return s.readAll(view, o, out)
}

// sender sends messages until the call is to be cut.
type sender struct {
	call streams.Streams_ReadServer
	left int // messages until the cut; below 0: no cut
}

func (s *sender) send(m *streams.ReadResp) error {
	if s.left == 0 {
		return errAway
	}
	s.left--
	return s.call.Send(m)
}

func (s *sender) event(r *esdbcluster.Record) error {
	return s.send(&streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
				MostSignificantBits:  int64(binary.BigEndian.Uint64(r.ID[:8])),
				LeastSignificantBits: int64(binary.BigEndian.Uint64(r.ID[8:])),
			}}},
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.Stream)},
			StreamRevision:   r.Revision, PreparePosition: r.Position, CommitPosition: r.Position,
			Metadata:       map[string]string{"type": r.Kind, "content-type": r.Content, "created": strconv.FormatInt(r.Created, 10)},
			CustomMetadata: r.Meta, Data: r.Data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: r.Position},
	}}})
}

func (s *sender) events(records []*esdbcluster.Record, most uint64) error {
	for _, r := range records[:min(most, uint64(len(records)))] {
		if err := s.event(r); err != nil {
			return err
		}
	}
	return nil
}

func readStream(view esdbcluster.View, o *streams.ReadReq_Options, out *sender) error {
	records := view.Stream(string(o.GetStream().GetStreamIdentifier().GetStreamName()))
	if len(records) == 0 {
		return out.send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
			StreamIdentifier: o.GetStream().GetStreamIdentifier(),
		}}})
	}
	from := uint64(0)
	switch r := o.GetStream().GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		from = r.Revision
	case *streams.ReadReq_Options_StreamOptions_End:
		from = uint64(len(records)) - 1
		if o.GetReadDirection() == streams.ReadReq_Options_Forwards {
			from++
		}
	}
	if o.GetReadDirection() == streams.ReadReq_Options_Backwards {
		records = slices.Clone(records[:min(from+1, uint64(len(records)))])
		slices.Reverse(records)
	} else {
		records = records[min(from, uint64(len(records))):]
	}
	return out.events(records, o.GetCount())
}

// start returns the index at which a read of the log begins, and whether a record is at
// its position. A position between records is refused; beyond the view it is allowed if
// another node has a record there.
func (s *Server) start(view esdbcluster.View, o *streams.ReadReq_Options_AllOptions) (place int, exact bool, err error) {
	switch p := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_End:
		return len(view.All()), false, nil
	case *streams.ReadReq_Options_AllOptions_Position:
		at := p.Position
		if at.GetCommitPosition() == math.MaxUint64 {
			return len(view.All()), false, nil
		}
		if place, exact = view.Find(at.GetCommitPosition()); !exact && place == len(view.All()) {
			exact = s.cluster.Model.Has(at.GetCommitPosition())
		}
		if !exact || at.GetCommitPosition() != at.GetPreparePosition() {
			return 0, false, status.Errorf(codes.InvalidArgument, "Invalid position: C:%d/P:%d", at.GetCommitPosition(), at.GetPreparePosition())
		}
	}
	return place, exact, nil
}

// readAll reads from a position on, the record at it included; backwards, before it.
func (s *Server) readAll(view esdbcluster.View, o *streams.ReadReq_Options, out *sender) error {
	place, _, err := s.start(view, o.GetAll())
	if err != nil {
		return err
	}
	records := view.All()
	if o.GetReadDirection() == streams.ReadReq_Options_Backwards {
		from := max(0, place-int(min(o.GetCount(), math.MaxInt32)))
		records = slices.Clone(records[from:place])
		slices.Reverse(records)
	} else {
		records = records[place:]
	}
	return out.events(records, o.GetCount())
}

// from returns the lowest position that a subscription is to be sent.
func (s *Server) from(view esdbcluster.View, o *streams.ReadReq_Options_AllOptions) (uint64, error) {
	place, exact, err := s.start(view, o)
	switch all := view.All(); {
	case err != nil:
		return 0, err
	case exact:
		return o.GetPosition().GetCommitPosition() + 1, nil
	case place == len(all) && place > 0:
		return all[place-1].Position + 1, nil
	}
	return 0, nil // from the start
}

// subscribe sends the records after a position that pass the filter, until the call ends.
func (s *Server) subscribe(view esdbcluster.View, o *streams.ReadReq_Options, out *sender) error {
	passes, err := filter(o.GetFilter())
	if err != nil {
		return err
	}
	from, err := s.from(view, o.GetAll())
	if err != nil {
		return err
	}
	sub, err := s.cluster.Model.Subscribe(s.number, requiresLeader(out.call.Context()), from, passes)
	if err != nil {
		return s.refused(err, out.call)
	}
	defer sub.Close()
	s.trouble.count(func(m *Met) *int { return &m.Subscriptions })
	f := &following{
		sender: out, Subscription: sub, passes: passes, silent: s.options.Silent, muted: s.trouble.muted(),
		every: uint64(o.GetFilter().GetMax()) * uint64(o.GetFilter().GetCheckpointIntervalMultiplier()),
	}
	err = out.send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: fmt.Sprintf("%p", out)},
	}})
	for err == nil {
		err = f.step(s)
	}
	return err
}

// following is a subscription as it is sent.
type following struct {
	*sender
	*esdbcluster.Subscription
	passes func(*esdbcluster.Record) bool
	silent bool            // does not send CaughtUp
	muted  <-chan struct{} // closed when nothing more is to be sent
	every  uint64          // records between two checkpoints; 0: no checkpoints
	looked uint64          // records so far
}

// catchUpPage is the number of records that a subscription takes at once.
const catchUpPage = 64

// step waits for the subscription's next step and sends it.
func (f *following) step(s *Server) error {
	ctx := f.call.Context()
	select {
	case <-f.muted:
		<-ctx.Done()
	default:
	}
	news, err := f.Next(catchUpPage)
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return s.refused(err, f.call)
	case news.CaughtUp && !f.silent:
		return f.send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
	case news.More != nil:
		select {
		case <-news.More:
		case <-f.muted:
		case <-ctx.Done():
		}
	}
	for _, r := range news.Records {
		if err := f.record(r); err != nil {
			return err
		}
	}
	return nil
}

// record sends a record that passes, and a checkpoint if one is due.
func (f *following) record(r *esdbcluster.Record) error {
	if f.passes(r) {
		if err := f.event(r); err != nil {
			return err
		}
	}
	if f.looked++; f.every == 0 || f.looked%f.every != 0 {
		return nil
	}
	return f.send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: r.Position, PreparePosition: r.Position},
	}})
}

// filter returns a subscription's filter as a function.
func filter(f *streams.ReadReq_Options_FilterOptions) (func(*esdbcluster.Record) bool, error) {
	if f == nil {
		return func(*esdbcluster.Record) bool { return true }, nil
	}
	name := func(r *esdbcluster.Record) string { return r.Kind }
	expression := f.GetEventType()
	if f.GetStreamIdentifier() != nil {
		name, expression = func(r *esdbcluster.Record) string { return r.Stream }, f.GetStreamIdentifier()
	}
	if expression.GetRegex() != "" {
		pattern, err := regexp.Compile(expression.GetRegex())
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		return func(r *esdbcluster.Record) bool { return pattern.MatchString(name(r)) }, nil
	}
	return func(r *esdbcluster.Record) bool {
		return slices.ContainsFunc(expression.GetPrefix(), func(p string) bool { return strings.HasPrefix(name(r), p) })
	}, nil
}
