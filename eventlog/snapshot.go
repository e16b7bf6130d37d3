package eventlog

// Snapshot is a stream's folded state at a version, from which folding continues. It may be
// deleted at any time, because the events hold the same information.
type Snapshot struct {
	Stream   Stream
	Version  Version  // of the last event included
	Position Position // of that event
	Link     Link     // link to pass on to the next event
	Schema   int      // version of Data's format; every aggregate has its own numbers
	Data     []byte
}
