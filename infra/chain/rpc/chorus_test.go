package rpc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each caller gets the answer to a question asked after its call, and many concurrent callers
// cost few questions.
func TestChorus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s chorus[time.Time]
		var questions atomic.Int64
		ask := func(context.Context) (time.Time, error) {
			questions.Add(1)
			put := time.Now()
			<-time.After(10 * time.Millisecond)
			return put, nil
		}
		var asking sync.WaitGroup
		for i := range 500 {
			asking.Go(func() {
				<-time.After(time.Duration(i/10) * time.Millisecond)
				asked := time.Now()
				put, err := s.do(t.Context(), ask)
				if err != nil || put.Before(asked) {
					t.Errorf("asked at %v, answered by a question of %v, %v", asked, put, err)
				}
				if waited := time.Since(asked); waited > 20*time.Millisecond {
					t.Errorf("waited %v", waited)
				}
			})
		}
		asking.Wait()
		if n := questions.Load(); n > 7 { // 50 ms of callers, and the last one
			t.Errorf("%d questions", n)
		}
	})
}

// A caller that gives up affects no other caller, and nothing blocks.
func TestChorusGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s chorus[int]
		ask := func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(10 * time.Millisecond):
				return 7, nil
			}
		}
		var asking sync.WaitGroup
		for i := range 30 {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3)*4*time.Millisecond)
				defer cancel()
				if _, err := s.do(ctx, ask); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
			asking.Go(func() {
				if n, err := s.do(t.Context(), ask); n != 7 || err != nil {
					t.Error(n, err)
				}
			})
		}
		asking.Wait()
		if n, err := s.do(t.Context(), ask); n != 7 || err != nil {
			t.Error(n, err)
		}
	})
}

// All callers of a failed question get its error.
func TestChorusTrouble(t *testing.T) {
	var s chorus[int]
	trouble := errors.New("trouble")
	if _, err := s.do(t.Context(), func(context.Context) (int, error) { return 0, trouble }); !errors.Is(err, trouble) {
		t.Error(err)
	}
}
