package eventstoredb

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// metadata is an event's, as JSON. The server's own projections and tools look for
// $correlationId and $causationId.
type metadata struct {
	Correlation eventlog.ID `json:"$correlationId,omitzero"`
	Causation   eventlog.ID `json:"$causationId,omitzero"`
	Actor       string      `json:"actor,omitempty"`
	Trace       string      `json:"trace,omitempty"`
	// Link is the event's tie to the one before it.
	Link eventlog.Link `json:"link,omitzero"`
	// Append marks the try that wrote an append, at its last event.
	Append string `json:"append,omitempty"`
}

// propose is events as the client takes them, and about how many bytes the server counts
// for them.
func propose(events []eventlog.Event, mark string) (proposed []esdb.EventData, size int, err error) {
	proposed = make([]esdb.EventData, len(events))
	for i, e := range events {
		m := metadata{Correlation: e.Meta.Correlation, Causation: e.Meta.Causation, Actor: e.Meta.Actor, Trace: e.Meta.Trace, Link: e.Meta.Link}
		if i == len(events)-1 {
			m.Append = mark
		}
		meta, err := json.Marshal(m)
		if err != nil {
			return nil, 0, fmt.Errorf("metadata of event %s: %w", e.ID, err)
		}
		proposed[i] = esdb.EventData{
			EventID: uuid.UUID(e.ID), EventType: e.Name, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: meta,
		}
		size += len(e.Data) + len(meta) + 2*len(e.Name) // the server's text has two bytes a letter
	}
	return proposed, size, nil
}

// readMeta is an event's metadata, and the mark of its append.
func readMeta(e *esdb.RecordedEvent) (eventlog.Meta, string, error) {
	var m metadata
	if len(e.UserMetadata) > 0 {
		if err := json.Unmarshal(e.UserMetadata, &m); err != nil {
			// Not wrapped: no trouble with the connection.
			return eventlog.Meta{}, "", fmt.Errorf("metadata of event %s: %v", e.EventID, err) //nolint:errorlint // see above
		}
	}
	return eventlog.Meta{Correlation: m.Correlation, Causation: m.Causation, Actor: m.Actor, Trace: m.Trace, Link: m.Link}, m.Append, nil
}

// record is an event as the ports speak of it.
func (l *Log) record(e *esdb.RecordedEvent) (eventlog.Recorded, error) {
	at, err := positionOf(e)
	if err != nil {
		return eventlog.Recorded{}, err
	}
	meta, _, err := readMeta(e)
	if err != nil {
		return eventlog.Recorded{}, &eventlog.Stuck{At: at, Err: err}
	}
	return eventlog.Recorded{
		Event:  eventlog.Event{ID: eventlog.ID(e.EventID), Name: e.EventType, Data: e.Data, Meta: meta},
		Stream: eventlog.Stream(e.StreamID[len(l.prefix):]), Version: eventlog.Version(e.EventNumber + 1),
		Position: at, At: e.CreatedDate.UTC().Truncate(time.Microsecond),
	}, nil
}

// positionOf returns an event's position. Commit and prepare position differ only for events
// written in a transaction of the old TCP protocol, which no single number can name.
func positionOf(e *esdb.RecordedEvent) (eventlog.Position, error) {
	if e.Position.Commit != e.Position.Prepare {
		return 0, fmt.Errorf("event %s was prepared at %d and committed at %d, in a transaction of the TCP protocol", e.EventID, e.Position.Prepare, e.Position.Commit)
	}
	return eventlog.Position(e.Position.Commit), nil
}
