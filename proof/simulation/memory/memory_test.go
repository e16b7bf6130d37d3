package memory_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
	"github.com/tempo-watchtower/watchtower/proof/simulation/memory"
)

const window = 4

func opened[P any](t *testing.T, port func(*memory.Store) P) storetest.Opened[P] {
	t.Helper()
	clock := storetest.MovedClock()
	s := memory.Open(memory.Options{Now: clock.Now, Window: window})
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // never fails
	return storetest.Opened[P]{
		Port:   port(s),
		Close:  func() error { return s.Close() },
		Reopen: func() P { s = s.Reopen(); return port(s) },
		Clock:  clock,
		Window: window,
		Medium: func() []byte { return bytes.Join(s.Medium(), nil) },
	}
}

func TestLog(t *testing.T) {
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return opened(t, func(s *memory.Store) storetest.Log { return s })
	})
}

func TestPayloads(t *testing.T) {
	storetest.Payloads(t, func(t *testing.T) storetest.Opened[storetest.PayloadRows] {
		return opened(t, func(s *memory.Store) storetest.PayloadRows { return s.Payloads() })
	})
}

func TestQueue(t *testing.T) {
	storetest.Queue(t, func(t *testing.T) storetest.Opened[storetest.WorkRows] {
		return opened(t, func(s *memory.Store) storetest.WorkRows { return s })
	})
}

func TestIntents(t *testing.T) {
	storetest.Intents(t, func(t *testing.T) storetest.Opened[storetest.IntentRows] {
		return opened(t, func(s *memory.Store) storetest.IntentRows { return s.Intents() })
	})
}

func TestNotices(t *testing.T) {
	storetest.Notices(t, func(t *testing.T) storetest.Opened[storetest.NoticeRows] {
		return opened(t, func(s *memory.Store) storetest.NoticeRows { return s.Notices(storetest.NoticePolicy()) })
	})
}

func TestLeases(t *testing.T) {
	storetest.Leases(t, func(t *testing.T) storetest.Opened[storetest.LeaseRows] {
		return opened(t, func(s *memory.Store) storetest.LeaseRows { return s })
	})
}

func TestRequests(t *testing.T) {
	storetest.Requests(t, func(t *testing.T) storetest.Opened[storetest.RequestRows] {
		return opened(t, func(s *memory.Store) storetest.RequestRows { return taking{s.Requests()} })
	})
}

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(t *testing.T) storetest.Opened[storetest.CheckpointRows] {
		return opened(t, func(s *memory.Store) storetest.CheckpointRows { return s })
	})
}

// taking lets other goroutines run before each answer, as a database does: otherwise requests
// would rarely find another in progress.
type taking struct{ memory.Requests }

func (r taking) Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error) {
	defer runtime.Gosched()
	return r.Requests.Claim(ctx, c)
}

func (r taking) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	defer runtime.Gosched()
	return r.Requests.Answer(ctx, name, claim, a)
}
