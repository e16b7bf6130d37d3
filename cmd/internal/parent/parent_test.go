package parent

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrphanIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := Watch(ctx, cancel, os.Getppid()+1) // as if another process had been the parent
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the end of the parent was not noticed")
	}
	if ctx.Err() == nil {
		t.Error("the context goes on after the parent's end")
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := Watch(ctx, cancel, os.Getppid())
	cancel()
	<-done
}
