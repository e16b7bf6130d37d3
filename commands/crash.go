package commands

// CrashPoints lists the places in the packages that change state where a test may kill the process:
// between every two steps whose order matters.
func CrashPoints() []string {
	return []string{
		"payload.kept",  // bytes kept, Accepted not yet appended
		"append.before", // decided, not yet appended
		"append.after",  // appended, caller not yet answered
		"send.before",   // about to send the bytes to nodes
		"send.after",    // sent, result not yet recorded
		"queue.applied", // the due queue has folded events
		"verdict",       // the watcher is about to announce or seal
	}
}
