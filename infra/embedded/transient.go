package embedded

import "zombiezen.com/go/sqlite"

// Transient reports whether an error may pass without a change to the program: the disk is full
// or fails, or a lock was not available. Nothing was written.
func Transient(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultNoMem:
		return true
	}
	return false
}
