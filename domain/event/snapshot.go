package event

// Snapshot is a stream's state as it was folded once, to be folded on from. It may be
// thrown away at any time: the events say the same.
type Snapshot struct {
	Stream   Stream
	Version  Version  // of the last event that is in it
	Position Position // of that event
	Link     Link     // that the next event is made over
	Schema   int      // which shape Data has; every aggregate numbers its own
	Data     []byte
}
