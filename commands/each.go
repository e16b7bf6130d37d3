package commands

import (
	"errors"
	"sync"
)

// Each calls do for 0 to n-1, at most atOnce calls at a time, so that their appends share
// commits. It returns the joined errors after all calls have ended.
func Each(n, atOnce int, do func(i int) error) error {
	var working sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	errs := make([]error, n)
	for i := range n {
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	working.Wait()
	return errors.Join(errs...)
}
