package esdbtest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gossip "github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// gossiping is apart from Server because both have a method Read.
type gossiping struct {
	gossip.UnimplementedGossipServer
	*Server
}

// Read tells the cluster's members.
func (g gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	return g.gossip(), nil
}

// allowed refuses calls without the user's name and password.
func (s *Server) allowed(ctx context.Context) error {
	if s.options.User == "" {
		return nil
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(s.options.User+":"+s.options.Password))
	given, _ := metadata.FromIncomingContext(ctx)
	if !slices.Contains(given.Get("authorization"), want) {
		return status.Error(codes.Unauthenticated, "Unauthenticated")
	}
	return nil
}

// Append takes the options and the events of one append.
func (s *Server) Append(call streams.Streams_AppendServer) error {
	if err := errors.Join(s.allowed(call.Context()), s.trouble.delay(call.Context())); err != nil {
		return err
	}
	if leader := s.led(); leader != nil {
		s.trouble.mu.Lock()
		s.trouble.met.Strays++
		s.trouble.mu.Unlock()
		host, port := leader.endpoint()
		err, trailer := notLeader(host, strconv.Itoa(int(port)))
		call.SetTrailer(trailer)
		return err
	}
	stream, expected, events, err := s.proposed(call)
	if err != nil {
		return err
	}
	if s.trouble.loseAppend() {
		return errAway
	}
	out, err := s.data.append(stream, expected, events)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if s.trouble.loseReply() {
		return errAway
	}
	return call.SendAndClose(answer(expected, out))
}

// proposed receives an append.
func (s *Server) proposed(call streams.Streams_AppendServer) (stream string, expected expectation, events []proposal, err error) {
	size := 0
	for {
		req, err := call.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return stream, expected, events, nil
		case err != nil:
			return "", expected, nil, err
		}
		if o := req.GetOptions(); o != nil {
			stream, expected = string(o.GetStreamIdentifier().GetStreamName()), expectationOf(o)
			continue
		}
		p := req.GetProposedMessage()
		e := proposal{
			id: idOf(p.GetId()), kind: p.GetMetadata()["type"], content: p.GetMetadata()["content-type"],
			data: p.GetData(), meta: p.GetCustomMetadata(),
		}
		if e.kind == "" || e.content == "" {
			return "", expected, nil, status.Error(codes.InvalidArgument, "Required Metadata Property is missing")
		}
		if size += len(e.data) + len(e.meta) + 2*len(e.kind); size > s.options.MaxAppendBytes {
			call.SetTrailer(metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(s.options.MaxAppendBytes)))
			return "", expected, nil, status.Errorf(codes.InvalidArgument, "Maximum Append Size of %d Exceeded.", s.options.MaxAppendBytes)
		}
		events = append(events, e)
	}
}

func idOf(id *shared.UUID) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], uint64(id.GetStructured().GetMostSignificantBits()))
	binary.BigEndian.PutUint64(b[8:], uint64(id.GetStructured().GetLeastSignificantBits()))
	return b
}

func expectationOf(o *streams.AppendReq_Options) expectation {
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		return expectation{revision: e.Revision}
	case *streams.AppendReq_Options_NoStream:
		return expectation{kind: expectNoStream}
	case *streams.AppendReq_Options_StreamExists:
		return expectation{kind: expectStream}
	}
	return expectation{kind: expectAny}
}

// answer is how an append is told what came of it.
func answer(e expectation, out outcome) *streams.AppendResp {
	if !out.wrong {
		return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
			CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: out.last.Revision},
			PositionOption: &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
				CommitPosition: out.last.Position, PreparePosition: out.last.Position,
			}},
		}}}
	}
	wrong := &streams.AppendResp_WrongExpectedVersion{
		CurrentRevisionOption: &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}},
	}
	if out.last != nil {
		wrong.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: out.last.Revision}
	}
	switch e.kind {
	case expectRevision:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: e.revision}
	case expectNoStream:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
	case expectStream:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: wrong}}
}

// Read serves reads of a stream and of the log, and subscriptions to the log.
func (s *Server) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	if err := errors.Join(s.allowed(call.Context()), s.trouble.delay(call.Context())); err != nil {
		return err
	}
	out := &sender{call: call, left: s.trouble.cutAfter()}
	o := req.GetOptions()
	switch {
	case o.GetStream() != nil && o.GetSubscription() != nil:
		return status.Error(codes.Unimplemented, "this double has no subscriptions to a stream")
	case o.GetStream() != nil:
		return s.readStream(o, out)
	case o.GetSubscription() != nil:
		return s.subscribe(o, out)
	case o.GetFilter() != nil:
		return status.Error(codes.Unimplemented, "this double filters subscriptions only")
	}
	return s.readAll(o, out)
}

// sender sends messages until it is to cut them short.
type sender struct {
	call streams.Streams_ReadServer
	left int // below 0: no end
}

func (s *sender) send(m *streams.ReadResp) error {
	if s.left == 0 {
		return errAway
	}
	s.left--
	return s.call.Send(m)
}

func (s *sender) event(r *record) error {
	most, least := structured(r.ID)
	return s.send(&streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
				MostSignificantBits: most, LeastSignificantBits: least,
			}}},
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.Stream)},
			StreamRevision:   r.Revision, PreparePosition: r.Position, CommitPosition: r.Position,
			Metadata:       map[string]string{"type": r.Kind, "content-type": r.Content, "created": strconv.FormatInt(r.Created, 10)},
			CustomMetadata: r.Meta, Data: r.Data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: r.Position},
	}}})
}

func (s *Server) readStream(o *streams.ReadReq_Options, out *sender) error {
	name := o.GetStream().GetStreamIdentifier().GetStreamName()
	s.data.mu.RLock()
	records := s.data.streams[string(name)]
	s.data.mu.RUnlock()
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
	return some(records, o.GetCount(), out)
}

func some(records []*record, most uint64, out *sender) error {
	for _, r := range records[:min(most, uint64(len(records)))] {
		if err := out.event(r); err != nil {
			return err
		}
	}
	return nil
}

// start is the place in the log that a read begins at. A position at which there is no
// record is not one, and a real server may find anything there.
func (s *Server) start(o *streams.ReadReq_Options_AllOptions) (place int, exact bool, err error) {
	switch p := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_End:
		return len(s.data.all), false, nil
	case *streams.ReadReq_Options_AllOptions_Position:
		at := p.Position
		if at.GetCommitPosition() == math.MaxUint64 {
			return len(s.data.all), false, nil
		}
		place, exact = s.data.find(at.GetCommitPosition())
		if !exact || at.GetCommitPosition() != at.GetPreparePosition() {
			return 0, false, status.Errorf(codes.InvalidArgument, "Invalid position: C:%d/P:%d", at.GetCommitPosition(), at.GetPreparePosition())
		}
	}
	return place, exact, nil
}

// readAll reads from a position on, with what is at it; backwards, what is before it.
func (s *Server) readAll(o *streams.ReadReq_Options, out *sender) error {
	s.data.mu.RLock()
	place, _, err := s.start(o.GetAll())
	records := s.data.all
	s.data.mu.RUnlock()
	if err != nil {
		return err
	}
	if o.GetReadDirection() == streams.ReadReq_Options_Backwards {
		from := max(0, place-int(min(o.GetCount(), math.MaxInt32)))
		records = slices.Clone(records[from:place])
		slices.Reverse(records)
	} else {
		records = records[place:]
	}
	return some(records, o.GetCount(), out)
}

// subscribe sends what is after a position and passes the filter, for ever.
func (s *Server) subscribe(o *streams.ReadReq_Options, out *sender) error {
	passes, err := filter(o.GetFilter())
	if err != nil {
		return err
	}
	s.data.mu.RLock()
	place, exact, err := s.start(o.GetAll())
	s.data.mu.RUnlock()
	if err != nil {
		return err
	}
	if exact {
		place++
	}
	err = out.send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: fmt.Sprintf("%p", out)},
	}})
	every := uint64(o.GetFilter().GetMax()) * uint64(o.GetFilter().GetCheckpointIntervalMultiplier())
	told, muted := s.options.Silent, s.trouble.muted()
	for looked := uint64(0); err == nil; {
		select {
		case <-muted:
			<-out.call.Context().Done()
		default:
		}
		s.data.mu.RLock()
		records, news := s.data.all[place:], s.data.news
		s.data.mu.RUnlock()
		if len(records) == 0 {
			if !told {
				told = true
				if err := out.send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}); err != nil {
					return err
				}
			}
			select {
			case <-news:
				continue
			case <-muted:
				continue
			case <-out.call.Context().Done():
				return status.FromContextError(out.call.Context().Err()).Err()
			}
		}
		for _, r := range records {
			place++
			if passes(r) {
				err = out.event(r)
			}
			if looked++; err == nil && every > 0 && looked%every == 0 {
				err = out.send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
					Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: r.Position, PreparePosition: r.Position},
				}})
			}
			if err != nil {
				return err
			}
		}
	}
	return err
}

// filter is a subscription's, as a function.
func filter(f *streams.ReadReq_Options_FilterOptions) (func(*record) bool, error) {
	if f == nil {
		return func(*record) bool { return true }, nil
	}
	name := func(r *record) string { return r.Kind }
	expression := f.GetEventType()
	if f.GetStreamIdentifier() != nil {
		name, expression = func(r *record) string { return r.Stream }, f.GetStreamIdentifier()
	}
	if expression.GetRegex() != "" {
		pattern, err := regexp.Compile(expression.GetRegex())
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		return func(r *record) bool { return pattern.MatchString(name(r)) }, nil
	}
	return func(r *record) bool {
		return slices.ContainsFunc(expression.GetPrefix(), func(p string) bool { return strings.HasPrefix(name(r), p) })
	}, nil
}
