package tail

import (
	"context"
	"time"
)

// Listen keeps the log followed until the function it returns is called, once. Who
// waits for [Tail.Grown] listens.
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

// unlisten lets the tail go on for a while: who asks again and again should not have
// it begin again and again.
func (t *Tail) unlisten() {
	if t.listeners--; t.listeners == 0 {
		t.rest = time.AfterFunc(lingers, t.sleep)
	}
}

// sleep ends following, unless somebody has begun to listen meanwhile. What was kept
// is forgotten: when it goes on, the log may have grown by more than fits.
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

// awaken waits until somebody listens. It reports false when ctx ends.
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
