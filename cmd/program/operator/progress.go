package operator

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Plain removes terminal control characters from text.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// Unchecked is the error of a verification that could not finish. Its exit status differs from
// that for faults found.
type Unchecked struct{ Err error }

func (e Unchecked) Error() string { return e.Err.Error() }
func (e Unchecked) Unwrap() error { return e.Err }

// progressEvery is the pause between two progress lines.
const progressEvery = 2 * time.Second

// Progress returns a function that prints the progress of each step every progressEvery.
func Progress(to io.Writer) func(step string, done, of uint64) {
	last := time.Now()
	return func(step string, done, of uint64) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		if of == 0 {
			fmt.Fprintf(to, "%s: %d\n", step, done) //nolint:errcheck // progress only
			return
		}
		fmt.Fprintf(to, "%s: %d of %d\n", step, done, of) //nolint:errcheck // progress only
	}
}
