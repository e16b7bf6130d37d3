package eventstoredb

import "time"

// LookEvery sets for how long the server may send nothing before it is asked.
func (l *Log) LookEvery(d time.Duration) { l.lookEvery = d }
