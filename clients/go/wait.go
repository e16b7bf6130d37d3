package watchtower

import (
	"cmp"
	"context"
	"time"
)

// waitEach is how long one request waits. The services allow 55 seconds.
const waitEach = 50 * time.Second

// await asks for something until a wait for it has ended: the milestone is reached or can no
// longer be reached. If ctx ends first, await returns its error with the last answer.
func await[T any](ctx context.Context, c caller, path string, m Milestone, waited func(T) *Waited) (seen T, err error) {
	for try := 1; ; try++ {
		wait := waitEach
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, max(time.Until(deadline)/10*9, 0)) // so the answer arrives in time
		}
		r := get(path, waiting(m, cmp.Or(wait, time.Millisecond)))
		r.wait = wait
		var found T
		if err := c.call(ctx, r, &found); err != nil {
			return seen, err
		}
		seen = found
		switch w := waited(found); {
		case w == nil || w.Reached || w.Because == "ended":
			return seen, nil
		case w.Because == "timeout" && wait == waitEach:
			try = 0
			continue
		}
		if err := pause(ctx, backoff(try)); err != nil {
			return seen, err
		}
	}
}
