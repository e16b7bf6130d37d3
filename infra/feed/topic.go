package feed

import (
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// All is the topic of every event.
const All = "all"

// Filter parses a topic, which selects events:
//
//	all                     every event
//	stream:tx-42431-        the events of streams whose names begin so
//	name:tx.mined.,tx.exp   the events whose names begin in one of these ways
func Filter(topic string) (eventlog.Filter, error) {
	if topic == All {
		return eventlog.Filter{}, nil
	}
	kind, list, _ := strings.Cut(topic, ":")
	prefixes := strings.Split(list, ",")
	for _, p := range prefixes {
		if p == "" {
			return eventlog.Filter{}, fmt.Errorf("topic %q: want %q, %q or %q", topic, All, "stream:PREFIX,…", "name:PREFIX,…")
		}
	}
	switch kind {
	case "stream":
		return eventlog.Filter{Streams: prefixes}, nil
	case "name":
		return eventlog.Filter{Names: prefixes}, nil
	}
	return eventlog.Filter{}, fmt.Errorf("topic %q: %q is neither %q nor %q", topic, kind, "stream", "name")
}
