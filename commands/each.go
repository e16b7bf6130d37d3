package commands

import (
	"errors"
	"sync"
)

// Each calls do for 0 to n-1, at most so many at once, so that what they append shares
// commits. It returns when all have ended, with all their errors.
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
