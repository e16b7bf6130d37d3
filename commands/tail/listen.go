package tail

import (
	"context"
	"time"
)

// Listen keeps the log followed until the function it returns is called, once. A caller
// that waits for [Tail.Grown] must listen.
func (t *Tail) Listen() (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listen()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unlisten()
	}
}

func (t *Tail) listen() {
	if t.listeners++; t.listeners > 1 {
		return
	}
	if t.rest != nil {
		t.rest.Stop()
	}
	if t.awake {
		return
	}
	t.awake = true
	select {
	case t.roused <- struct{}{}:
	default:
	}
}

// unlisten lets the tail follow on for a while, so that a caller that asks repeatedly does
// not restart it each time.
func (t *Tail) unlisten() {
	if t.listeners--; t.listeners == 0 {
		t.rest = time.AfterFunc(lingers, t.sleep)
	}
}

// sleep ends following, unless a listener has come meanwhile. It forgets the events in
// memory: until following resumes, the log may grow by more than fits.
func (t *Tail) sleep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listeners > 0 {
		return
	}
	t.awake, t.recent = false, recent{}
	t.stop()
}

func (t *Tail) isAwake() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.awake
}

// awaken waits for a listener. It reports false when ctx ends.
func (t *Tail) awaken(ctx context.Context) bool {
	for !t.isAwake() {
		select {
		case <-ctx.Done():
			return false
		case <-t.roused:
		}
	}
	return true
}
