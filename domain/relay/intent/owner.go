package intent

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// OwnerOf returns the client of an intent from the intent's first event. Of a request with much
// data it reads only the beginning.
func OwnerOf(first eventlog.Recorded, codec eventlog.Codec[Event]) (client string, err error) {
	if client, ok := scanOwner(first); ok {
		return client, nil
	}
	e, err := codec.Decode(first.Name, first.Data)
	if err != nil {
		return "", err
	}
	requested, ok := e.(Requested)
	if !ok {
		return "", fmt.Errorf("%s begins with %s", first.Stream, first.Name)
	}
	return requested.Request.Client, nil
}

// scanOwner reads the client from the beginning of the event, if the event has the form in which
// it is written now.
func scanOwner(first eventlog.Recorded) (client string, ok bool) {
	if first.Name != "intent.requested.v1" {
		return "", false
	}
	s := eventlog.NewScan(first.Data)
	s.Open()
	s.Must(`"id":`)
	s.Text()
	s.Must(`"digest":`)
	s.Text()
	s.Must(`"request":`)
	s.Open()
	if s.Member(`"client":`) { // left out if it is empty
		client = s.Text()
	}
	s.Must(`"key":`)
	return client, !s.Lost()
}
