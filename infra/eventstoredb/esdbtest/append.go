package esdbtest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

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

// Append receives one append and answers it.
func (s *Server) Append(call streams.Streams_AppendServer) error {
	if err := errors.Join(s.allowed(call.Context()), s.trouble.delay(call.Context())); err != nil {
		return err
	}
	stream, expected, events, err := s.proposed(call)
	if err != nil {
		return err
	}
	if s.trouble.loseAppend() {
		return errAway
	}
	pending := s.cluster.Model.Append(s.number, requiresLeader(call.Context()), stream, expected, events)
	select {
	case <-pending.Done():
	case <-call.Context().Done():
		return status.FromContextError(call.Context().Err()).Err()
	}
	last, err := pending.Outcome()
	var conflict *esdbcluster.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		return s.refused(err, call)
	}
	if s.trouble.loseReply() {
		return errAway
	}
	if conflict != nil {
		return call.SendAndClose(conflicting(expected, conflict))
	}
	return call.SendAndClose(appended(last))
}

// requiresLeader reports whether a call wants to be served by the leader alone.
func requiresLeader(ctx context.Context) bool {
	given, _ := metadata.FromIncomingContext(ctx)
	return slices.ContainsFunc(given.Get("requires-leader"), func(v string) bool { return strings.EqualFold(v, "true") })
}

// refused returns the status of an error of the cluster.
func (s *Server) refused(err error, call interface{ SetTrailer(metadata.MD) }) error {
	var notLeader *esdbcluster.NotLeaderError
	switch {
	case errors.As(err, &notLeader):
		s.trouble.count(func(m *Met) *int { return &m.Strays })
		host, port := s.cluster.Nodes[notLeader.Leader-1].endpoint()
		err, trailer := notLeaderStatus(host, strconv.Itoa(int(port)))
		call.SetTrailer(trailer)
		return err
	case errors.Is(err, esdbcluster.ErrNotReady):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, esdbcluster.ErrCommitTimeout), errors.Is(err, esdbcluster.ErrSlow):
		return status.Error(codes.Aborted, err.Error())
	case errors.Is(err, esdbcluster.ErrGone):
		return errAway
	}
	return status.Error(codes.Internal, err.Error())
}

// proposed receives an append.
func (s *Server) proposed(call streams.Streams_AppendServer) (stream string, expected esdbcluster.Expectation, events []esdbcluster.Proposal, err error) {
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
		e := esdbcluster.Proposal{
			ID: idOf(p.GetId()), Kind: p.GetMetadata()["type"], Content: p.GetMetadata()["content-type"],
			Data: p.GetData(), Meta: p.GetCustomMetadata(),
		}
		if e.Kind == "" || e.Content == "" {
			return "", expected, nil, status.Error(codes.InvalidArgument, "Required Metadata Property is missing")
		}
		if size += len(e.Data) + len(e.Meta) + 2*len(e.Kind); size > s.options.MaxAppendBytes {
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

func expectationOf(o *streams.AppendReq_Options) esdbcluster.Expectation {
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		return esdbcluster.Expectation{Revision: e.Revision}
	case *streams.AppendReq_Options_NoStream:
		return esdbcluster.Expectation{Kind: esdbcluster.ExpectNoStream}
	case *streams.AppendReq_Options_StreamExists:
		return esdbcluster.Expectation{Kind: esdbcluster.ExpectStream}
	}
	return esdbcluster.Expectation{Kind: esdbcluster.ExpectAny}
}

// appended is the answer to an append that was written, or had been.
func appended(last *esdbcluster.Record) *streams.AppendResp {
	success := &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}},
		PositionOption:        &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}},
	}
	if last != nil {
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: last.Revision}
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: last.Position, PreparePosition: last.Position,
		}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// conflicting is the answer to an append to a stream that is not as expected.
func conflicting(e esdbcluster.Expectation, conflict *esdbcluster.ConflictError) *streams.AppendResp {
	wrong := &streams.AppendResp_WrongExpectedVersion{
		CurrentRevisionOption: &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}},
	}
	if conflict.Exists {
		wrong.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: conflict.Revision}
	}
	switch e.Kind {
	case esdbcluster.ExpectRevision:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: e.Revision}
	case esdbcluster.ExpectNoStream:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
	case esdbcluster.ExpectStream:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: wrong}}
}
