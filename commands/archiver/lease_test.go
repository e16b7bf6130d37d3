package archiver_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/archiver"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A restore runs alone: a service's archiver waits until it is done, and continues
// afterwards. Its results and errors are reported.
func TestOneAtATime(t *testing.T) {
	db, err := embedded.Open(t.TempDir(), embedded.Options{AllowDataLoss: true})
	check(t, err)
	defer func() { check(t, db.Close()) }()
	shelf := t.TempDir()
	replica := func(holder string) *archiver.Archiver {
		a := archiving(db.Log(), archive.NewFiles(archive.Dir(shelf), nil))
		a.Owner = lease.Owner{Leases: db.Work(), Holder: holder, TTL: time.Minute, Renew: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
		return a
	}
	service, operator := replica("service"), replica("operator")
	fill(t, service, 20)
	told, failed := make(chan archiver.Standing, 1), make(chan error, 1)
	service.Told, service.Failed = func(s archiver.Standing) { told <- s }, func(err error) { failed <- err }

	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	check(t, operator.Alone(t.Context(), func(context.Context) error {
		held, err := service.Owner.Once(t.Context(), archiver.Lease, func(context.Context) error { return nil })
		if held || err != nil {
			t.Errorf("both have the lease: %v", err)
		}
		return nil
	}))
	go func() { service.Run(ctx); close(ran) }()
	s := <-told
	if s.Segments < 5 || int(s.Past-1) != s.Segments*part || s.Begins != s.Past || s.Due != 0 || s.Bytes == 0 {
		t.Errorf("told of %+v", s)
	}
	check(t, operator.Alone(t.Context(), func(ctx context.Context) error { // the lease is free between two passes
		_, _, err := operator.Restore(ctx, 1)
		return err
	}))
	stop()
	<-ran

	// Errors are reported too.
	check(t, os.RemoveAll(shelf))
	check(t, os.WriteFile(shelf, nil, 0o600))
	from := len(streamOf(t, service, "group-1"))
	for i := range 2 * part {
		_, err := service.Log.Append(t.Context(), "group-1", eventlog.Version(from+i), eventlog.Event{ID: eventlog.ID{3, byte(i)}, Name: "group.joined.v1", Data: []byte(`{}`)})
		check(t, err)
	}
	ctx, stop = context.WithCancel(t.Context())
	ran = make(chan struct{})
	go func() { service.Run(ctx); close(ran) }()
	if s := <-told; s.Due == 0 {
		t.Errorf("a segment that cannot be written is not due: %+v", s)
	}
	if err := <-failed; err == nil || errors.Is(err, context.Canceled) {
		t.Error("failed with", err)
	}
	stop()
	<-ran
}
