package notifier

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// recordsMost bounds the endpoints that wait to be recorded as disabled.
const recordsMost = 1000

// recorder calls [Worker.Disabled] for one endpoint after the other, in a goroutine beside the
// worker's loop: attempts do not wait for a slow log.
type recorder struct {
	waiting chan notice.Endpoint
	ended   chan struct{}
	stop    context.CancelFunc // ends the calls
}

// newRecorder starts a recorder. The end of ctx does not end it: attempts in progress may still
// disable endpoints.
func newRecorder(ctx context.Context, disabled func(context.Context, notice.Endpoint)) *recorder {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &recorder{waiting: make(chan notice.Endpoint, recordsMost), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(r.ended)
		for e := range r.waiting {
			disabled(ctx, e)
		}
	}()
	return r
}

// add never blocks. It returns false if there is no room.
func (r *recorder) add(e notice.Endpoint) bool {
	select {
	case r.waiting <- e:
		return true
	default:
		return false
	}
}

// end waits until all endpoints are recorded, and ends the calls after recordTime.
func (r *recorder) end() {
	close(r.waiting)
	late := time.AfterFunc(recordTime, r.stop)
	<-r.ended
	late.Stop()
	r.stop()
}
