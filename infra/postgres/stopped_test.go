package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// A process is stopped during a commit, holding the lock that every append needs. The server
// takes the lock from it, so others append meanwhile. When it continues, it commits its append
// once.
func TestStoppedCommitter(t *testing.T) {
	midst, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	op := open(t, postgres.Options{IdleTimeout: 200 * time.Millisecond, Crash: func(point string) {
		if point == postgres.CrashPoints()[0] {
			once.Do(func() { close(midst); <-goOn })
		}
	}})
	other, err := postgres.Open(soon(t), op.url, postgres.Options{})
	must(t, err)
	defer other.Close(soon(t)) //nolint:errcheck // not what is tested

	ended := make(chan error, 1)
	go func() {
		_, err := op.db.Log.Append(soon(t), "stopped", 0, happened("stopped", 0, 2)...)
		ended <- err
	}()
	<-midst
	_, err = other.Log.Append(soon(t), "awake", 0, happened("awake", 0, 1)...)
	must(t, err)
	if n := len(stands(t, other.Log, "stopped")); n != 0 {
		t.Errorf("%d events of whoever is stopped", n)
	}
	close(goOn)
	must(t, <-ended)
	if n := len(stands(t, other.Log, "stopped")); n != 2 {
		t.Errorf("%d events of whoever went on, not 2", n)
	}
}
