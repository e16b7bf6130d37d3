package eventstoredb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// appendOptions is the first message of an append.
func appendOptions(stream string, expected eventlog.Version) *streams.AppendReq {
	o := &streams.AppendReq_Options{
		StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(stream)},
		ExpectedStreamRevision: &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}},
	}
	if expected > 0 {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: uint64(min(expected, maxVersion)) - 1}
	}
	return &streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}}
}

// proposal is one of the messages that follow it.
func proposal(e esdb.EventData) *streams.AppendReq {
	return &streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
		Id: &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
			MostSignificantBits:  int64(binary.BigEndian.Uint64(e.EventID[:8])),
			LeastSignificantBits: int64(binary.BigEndian.Uint64(e.EventID[8:])),
		}}},
		Metadata:       map[string]string{"type": e.EventType, "content-type": "application/json"},
		Data:           e.Data,
		CustomMetadata: e.Metadata,
	}}}
}

// wrongVersion returns the conflict that an append was answered with, nil for a success.
func wrongVersion(answer *streams.AppendResp) error {
	wrong := answer.GetWrongExpectedVersion()
	switch {
	case wrong == nil:
		return nil
	case wrong.GetCurrentNoStream() != nil:
		return &WrongVersion{}
	}
	return &WrongVersion{eventlog.Version(wrong.GetCurrentRevision() + 1)}
}

// reading completes a request to read: no links are resolved, and ids are numbers.
func reading(o *streams.ReadReq_Options, backwards bool) *streams.ReadReq {
	if backwards {
		o.ReadDirection = streams.ReadReq_Options_Backwards
	}
	o.UuidOption = &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}}
	if o.FilterOption == nil {
		o.FilterOption = &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}}
	}
	return &streams.ReadReq{Options: o}
}

func streamRequest(stream string, o esdb.ReadStreamOptions, count uint64) *streams.ReadReq {
	of := &streams.ReadReq_Options_StreamOptions{StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)}}
	switch from := o.From.(type) {
	case esdb.StreamRevision:
		of.RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: from.Value}
	case esdb.End:
		of.RevisionOption = &streams.ReadReq_Options_StreamOptions_End{End: &shared.Empty{}}
	default:
		of.RevisionOption = &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}}
	}
	return reading(&streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: of},
		CountOption:  &streams.ReadReq_Options_Count{Count: count},
	}, o.Direction == esdb.Backwards)
}

func allOptions(from esdb.AllPosition) *streams.ReadReq_Options_All {
	of := &streams.ReadReq_Options_AllOptions{}
	switch from := from.(type) {
	case esdb.Position:
		of.AllOption = &streams.ReadReq_Options_AllOptions_Position{
			Position: &streams.ReadReq_Options_Position{CommitPosition: from.Commit, PreparePosition: from.Prepare},
		}
	case esdb.End:
		of.AllOption = &streams.ReadReq_Options_AllOptions_End{End: &shared.Empty{}}
	default:
		of.AllOption = &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}
	}
	return &streams.ReadReq_Options_All{All: of}
}

func allRequest(o esdb.ReadAllOptions, count uint64) *streams.ReadReq {
	return reading(&streams.ReadReq_Options{
		StreamOption: allOptions(o.From), CountOption: &streams.ReadReq_Options_Count{Count: count},
	}, o.Direction == esdb.Backwards)
}

func subscriptionRequest(o esdb.SubscribeToAllOptions) *streams.ReadReq {
	request := &streams.ReadReq_Options{
		StreamOption: allOptions(o.From),
		CountOption:  &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}},
	}
	if f := o.Filter; f != nil {
		by := &streams.ReadReq_Options_FilterOptions_Expression{Prefix: f.Prefixes, Regex: f.Regex}
		filter := &streams.ReadReq_Options_FilterOptions{
			Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: uint32(o.MaxSearchWindow)},
			CheckpointIntervalMultiplier: uint32(o.CheckpointInterval),
			Filter:                       &streams.ReadReq_Options_FilterOptions_StreamIdentifier{StreamIdentifier: by},
		}
		if f.Type == esdb.EventFilterType {
			filter.Filter = &streams.ReadReq_Options_FilterOptions_EventType{EventType: by}
		}
		request.FilterOption = &streams.ReadReq_Options_Filter{Filter: filter}
	}
	return reading(request, false)
}

// ticksPerSecond is the unit of an event's time: a tick has 100 ns.
const ticksPerSecond = 10_000_000

// recordedEvent translates an event. Its errors are permanent.
func recordedEvent(e *streams.ReadResp_ReadEvent_RecordedEvent) (*esdb.RecordedEvent, error) {
	id, err := eventID(e.GetId())
	if err != nil {
		return nil, fmt.Errorf("event %d of %s: %w", e.GetStreamRevision(), e.GetStreamIdentifier().GetStreamName(), err)
	}
	ticks, err := strconv.ParseInt(e.GetMetadata()["created"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("event %s has no time: %w", id, err)
	}
	return &esdb.RecordedEvent{
		EventID: id, EventType: e.GetMetadata()["type"], ContentType: e.GetMetadata()["content-type"],
		StreamID: string(e.GetStreamIdentifier().GetStreamName()), EventNumber: e.GetStreamRevision(),
		Position:    esdb.Position{Commit: e.GetCommitPosition(), Prepare: e.GetPreparePosition()},
		CreatedDate: time.Unix(ticks/ticksPerSecond, ticks%ticksPerSecond*100).UTC(),
		Data:        e.GetData(), UserMetadata: e.GetCustomMetadata(),
	}, nil
}

func eventID(id *shared.UUID) (uuid.UUID, error) {
	if bits := id.GetStructured(); bits != nil {
		var b uuid.UUID
		binary.BigEndian.PutUint64(b[:8], uint64(bits.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(b[8:], uint64(bits.GetLeastSignificantBits()))
		return b, nil
	}
	b, err := uuid.Parse(id.GetString_())
	if err != nil {
		return b, errors.New("it has no id")
	}
	return b, nil
}

// notification translates a message of a subscription; the zero Notification for a message
// of no interest.
func notification(m *streams.ReadResp) (n Notification, err error) {
	switch c := m.GetContent().(type) {
	case *streams.ReadResp_CaughtUp_:
		return Notification{CaughtUp: true}, nil
	case *streams.ReadResp_Checkpoint_:
		return Notification{At: eventlog.Position(c.Checkpoint.GetCommitPosition())}, nil
	case *streams.ReadResp_Event:
		if e := c.Event.GetEvent(); e != nil {
			n.At = eventlog.Position(e.GetCommitPosition())
			n.Event, err = recordedEvent(e)
		}
	}
	return n, err
}
