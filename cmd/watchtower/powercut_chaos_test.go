//go:build chaos && linux

package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// diskBytes is the size of a disk large enough for every test.
const diskBytes = 1 << 30

// box is one machine: its own disk, and on it a store and the service.
type box struct {
	*world
	disk    *rig.Disk
	db      *server.Postgres // nil: the embedded store
	service *rig.Service
}

// boxes runs a test on a machine with each store.
func boxes(t *testing.T, bytes int64, test func(t *testing.T, b *box)) {
	testenv.Root(t)
	testenv.Programs(t, rig.DiskPrograms()...)
	t.Run("embedded", func(t *testing.T) { test(t, newBox(t, bytes, false)) })
	t.Run("postgres", func(t *testing.T) { test(t, newBox(t, bytes, true)) })
}

func newBox(t *testing.T, bytes int64, postgres bool) *box {
	t.Helper()
	b := &box{}
	if b.disk = newDisk(t, bytes); postgres {
		b.db = newPostgresOn(t, b.disk)
	}
	b.world = newWorld(t, func(_ *testing.T, dir string) []string {
		if !postgres {
			return []string{"--store", "embedded:" + filepath.Join(b.disk.Dir, "data")}
		}
		return []string{"--store", b.db.URL(), "--vault-key-file", filepath.Join(dir, "vault.key")}
	}, "--block-time", "1")
	b.service = b.world.service(t)
	check(t, b.service.Start(b.ctx))
	return b
}

func newDisk(t *testing.T, bytes int64) *rig.Disk {
	t.Helper()
	disk, err := rig.NewDisk(t.Context(), bytes)
	check(t, err)
	t.Cleanup(func() { check(t, disk.Remove()) })
	return disk
}

// newPostgresOn starts a server with its data on a disk.
func newPostgresOn(t *testing.T, disk *rig.Disk) *server.Postgres {
	t.Helper()
	db, err := server.NewPostgresWith(t.Context(), testenv.Need(t, testenv.PostgresBinVar), server.PostgresOptions{Parent: disk.Dir})
	check(t, err)
	t.Cleanup(func() { check(t, db.KillAll()) })
	check(t, db.Start(t.Context()))
	check(t, disk.Sync(t.Context())) // initdb ran without flushing
	return db
}

// inject injects faults into the flushes of the processes that write to the disk, see
// [rig.Inject].
func (b *box) inject(t *testing.T, calls, what string) *rig.Injection {
	t.Helper()
	pids := []int{b.service.Pid()}
	if b.db != nil {
		// A stopped server forks no process that strace would miss.
		check(t, syscall.Kill(b.db.Pid(), syscall.SIGSTOP))
		defer func() { check(t, syscall.Kill(b.db.Pid(), syscall.SIGCONT)) }()
		var err error
		pids, err = server.Tree(b.db.Pid())
		check(t, err)
	}
	injection, err := rig.Inject(b.ctx, b.dir, calls, what, pids...)
	check(t, err)
	return injection
}

// freeze stops the machine at this instant and keeps the contents of its disk.
func (b *box) freeze() error {
	if err := b.service.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if b.db != nil {
		if err := b.db.Freeze(); err != nil {
			return err
		}
	}
	return b.disk.Snapshot(b.ctx)
}

// cut kills all processes, and restores the disk's contents of the freeze.
func (b *box) cut() error {
	b.service.Kill()
	if b.db != nil {
		if err := b.db.KillAll(); err != nil {
			return err
		}
	}
	return b.disk.Restore(b.ctx)
}

// restart starts the machine, and returns how long that took.
func (b *box) restart(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	if b.db != nil {
		if err := b.db.Start(ctx); err != nil {
			return 0, err
		}
	}
	err = b.service.Start(ctx)
	return time.Since(began), err
}

// powerCut cuts the power while clients post, after n payments have been acknowledged, and
// starts the machine again.
func (b *box) powerCut(t *testing.T, payments []rig.Payment, n int) (acked map[chain.Hash]bool, took time.Duration) {
	t.Helper()
	var failed error
	acked = loadAnd(b.ctx, b.service, payments, 8, n, func() {
		if failed = b.freeze(); failed == nil {
			failed = b.cut()
		}
	})
	check(t, failed)
	if len(acked) < n || len(acked) == len(payments) {
		t.Fatalf("%d of %d payments were acknowledged: the power was not cut under load", len(acked), len(payments))
	}
	took, err := b.restart(b.ctx)
	check(t, err)
	return acked, took
}

// settle has the clients repeat requests without an answer, and judges the end.
func (b *box) settle(t *testing.T, payments []rig.Payment, to chain.Address) {
	t.Helper()
	b.insist(t, payments, 8, b.service.URL)
	b.delivered(t, b.service.URL, payments, rig.Executed)
	b.paidOnce(t, to, len(payments))
	t.Logf("%d payments: none doubled; the longest wait for a node's first answer was %v", len(payments), b.late(t, b.service.URL, payments).Round(time.Millisecond))
}

// Row 7. The power is cut under load several times: every acknowledged payment survives.
func TestPowerCut(t *testing.T) {
	boxes(t, diskBytes, func(t *testing.T, b *box) {
		const cuts, each = 3, 200
		payments, to := rig.Payments(9700, cuts*each)
		ackedAll, lostAll, unheardAll := 0, 0, 0
		for i := range cuts {
			some := payments[i*each : (i+1)*each]
			acked, took := b.powerCut(t, some, each/2)
			lost, unheard := lost(acked, b.standing(t, some))
			t.Logf("cut %d: %d acknowledged, %d lost, %d stand that nobody heard of, ready after %v", i+1, len(acked), lost, unheard, took.Round(time.Millisecond))
			ackedAll, lostAll, unheardAll = ackedAll+len(acked), lostAll+lost, unheardAll+unheard
		}
		t.Logf("%d cuts: %d acknowledged, %d lost, %d stand that nobody heard of", cuts, ackedAll, lostAll, unheardAll)
		if lostAll > 0 {
			t.Errorf("%d of %d acknowledged were lost", lostAll, ackedAll)
		}
		b.settle(t, payments, to)
		check(t, b.service.Stop(b.ctx))
	})
}

// The same on a disk that reports flushes without doing them. Acknowledged payments must be
// missing; otherwise TestPowerCut could not detect a loss.
func TestPowerCutOfLyingDisk(t *testing.T) {
	testenv.Programs(t, rig.TracePrograms()...)
	boxes(t, diskBytes, func(t *testing.T, b *box) {
		lie := b.inject(t, rig.Flushes, "retval=0")
		payments, _ := rig.Payments(9710, 200)
		var failed error
		acked := loadAnd(b.ctx, b.service, payments, 8, 50, func() {
			if failed = b.freeze(); failed == nil {
				failed = b.cut()
			}
		})
		check(t, failed)
		t.Logf("%d flushes were only claimed", lie.Hits())
		check(t, lie.End())
		if _, err := b.restart(b.ctx); err != nil {
			t.Logf("of %d acknowledged all are lost: the store does not even start: %.300s", len(acked), err)
			b.judged = true // the log is missing, so there is nothing to judge
			return
		}
		lost, _ := lost(acked, b.standing(t, payments))
		unwritten := b.unwritten(t, payments)
		t.Logf("of %d acknowledged %d are lost, and %d attempts were not written", len(acked), lost, unwritten)
		if lost == 0 {
			t.Error("a disk that does not flush lost nothing: the cut is no cut")
		}
		check(t, b.service.Stop(b.ctx))
		b.judgeLosses(t, lost, b.without(t), unwritten)
	})
}

// The stores alone, configured not to wait for the disk: Postgres with synchronous_commit=off,
// SQLite with synchronous=OFF. These must lose events, too.
func TestPowerCutOfCarelessStore(t *testing.T) {
	testenv.Root(t)
	testenv.Programs(t, rig.DiskPrograms()...)
	t.Run("embedded", func(t *testing.T) {
		disk := newDisk(t, diskBytes)
		nothing := func() error { return nil }
		careless(t, disk, machine{
			open: func() (port.Store, func() error, error) {
				db, err := embedded.Open(filepath.Join(disk.Dir, "data"), embedded.Options{AllowDataLoss: true})
				if err != nil {
					return nil, nil, err
				}
				return db.Log(), db.Close, nil
			},
			freeze: func(stopWriters func()) error { stopWriters(); return nil }, // the store is in this process
			kill:   nothing, start: nothing,
		})
	})
	t.Run("postgres", func(t *testing.T) {
		disk := newDisk(t, diskBytes)
		server := newPostgresOn(t, disk)
		careless(t, disk, machine{
			open: func() (port.Store, func() error, error) {
				db, err := postgres.Open(t.Context(), server.URL()+"?synchronous_commit=off", postgres.Options{AllowDataLoss: true})
				if err != nil {
					return nil, nil, err
				}
				return db.Log, func() error { return db.Close(context.Background()) }, db.Migrate(t.Context())
			},
			freeze: func(func()) error { return server.Freeze() },
			kill:   server.KillAll, start: func() error { return server.Start(t.Context()) },
		})
	})
}

// machine runs a store alone.
type machine struct {
	open        func() (store port.Store, closed func() error, err error)
	freeze      func(stopWriters func()) error
	kill, start func() error
}

// careless appends to a store for a while, cuts the power, and counts the losses.
func careless(t *testing.T, disk *rig.Disk, m machine) {
	t.Helper()
	store, closed, err := m.open()
	check(t, err)
	check(t, disk.Sync(t.Context()))
	var acked atomic.Int64
	var writing sync.WaitGroup
	writers, stop := context.WithCancel(t.Context())
	for w := range 8 {
		writing.Go(func() {
			for i := 0; writers.Err() == nil; i++ {
				stream := eventlog.Stream(fmt.Sprintf("s-%d-%d", w, i))
				e := eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{}, 0), Name: "test.happened.v1", Data: []byte("{}")}
				if _, err := store.Append(writers, stream, 0, e); err == nil {
					acked.Add(1)
				}
			}
		})
	}
	<-time.After(3 * time.Second)
	check(t, m.freeze(func() { stop(); writing.Wait() }))
	told := acked.Load()
	check(t, disk.Snapshot(t.Context()))
	stop()
	check(t, m.kill())
	writing.Wait()
	_ = closed() // writes from now on come after the cut
	check(t, disk.Restore(t.Context()))
	check(t, m.start())
	store, closed, err = m.open()
	check(t, err)
	head, err := store.Head(t.Context())
	check(t, err)
	check(t, closed())
	t.Logf("%d appends acknowledged, %d of them lost (%.1f %%)", told, told-int64(head), 100-100*float64(head)/float64(told))
	if int64(head) >= told {
		t.Error("a store that does not wait for the disk lost nothing: the cut is no cut")
	}
}
