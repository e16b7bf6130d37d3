package api

import (
	"context"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// slowReader is a grouper that reaches the log's end at the fourth poll of its checkpoint.
type slowReader struct {
	commands.Checkpoints
	polled func()
	polls  int
	end    event.Position
}

func (s *slowReader) Checkpoint(context.Context, string) (event.Position, error) {
	if s.polled(); s.polls == 3 {
		return s.end, nil
	}
	s.polls++
	return 0, nil
}

// A request for groups takes a place for each poll of a checkpoint, and holds none in between: a client
// has one, and a place that is kept would end the request.
func TestGroupsPollInPlaces(t *testing.T) {
	s := newStack(t, plain)
	s.submit(payment(payroll(0), 0))
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grouper := &slowReader{end: head}
	c := s.config
	c.Lists, c.Groups.Checkpoints = commands.NewPlaces[holder](0, listShare, listQueue), grouper
	a := newAPI(c)
	grouper.polled = func() {
		if free, waiting := a.nonces.Load(); free != noncePlaces-1 || waiting != 0 {
			t.Errorf("%d places are free during a poll, and %d polls wait", free, waiting)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- a.caughtUp(ctx, httptest.NewRecorder(), &exchange{api: a}, viewer{})
	}()
	// The lists have no place, so the read models' checkpoints are not read.
	for waiting := 0; waiting == 0; _, waiting = a.Lists.Load() {
		select {
		case err := <-ended:
			t.Fatalf("the request waits for no list place, and ends with %v", err)
		default:
			runtime.Gosched()
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("the read models' checkpoints were read without a place")
	}
	if grouper.polls != 3 {
		t.Errorf("%d polls found the grouper behind", grouper.polls)
	}
	allFree(t, a.nonces, noncePlaces)
}
