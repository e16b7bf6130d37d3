package embedded

import (
	"errors"
	"fmt"
	"testing"

	"zombiezen.com/go/sqlite"
)

func TestTransient(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("append: %w", sqlite.ResultFull.ToError()): true,
		sqlite.ResultIOErrFsync.ToError():                     true,
		sqlite.ResultCorrupt.ToError():                        false,
		errors.New("something else"):                          false,
	} {
		if Transient(err) != want {
			t.Errorf("%v: want %v", err, want)
		}
	}
}
