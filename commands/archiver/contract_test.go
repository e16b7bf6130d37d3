package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"

	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// midway is a log whose events are archived and dropped while it is in use: after every few
// appends all full segments go.
type midway struct {
	*archive.Store
	live  live
	files *archive.Files
	t     *testing.T

	mu      sync.Mutex
	appends int
}

// rule settles about half of the streams; the events of the others are copied forward.
func rule() (r domain.Rule) {
	for i := range 10 {
		for _, prefix := range []string{"s-", "tx-1-", "old-", "w-", "one", "a"} {
			if name := fmt.Sprint(prefix, i); crc32.ChecksumIEEE([]byte(name))%2 == 0 {
				r = append(r, domain.Ending{Prefix: name})
			}
		}
	}
	return append(r, domain.Ending{Prefix: "one"})
}

func (m *midway) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	appended, err := m.Store.Append(ctx, stream, expected, events...)
	if err == nil && m.mu.TryLock() {
		defer m.mu.Unlock()
		if m.appends++; m.appends%4 == 0 {
			if err := m.archive(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
				m.t.Errorf("archive in mid-suite: %v", err)
			}
		}
	}
	return appended, err
}

func (m *midway) archive() error {
	ctx := context.Background()
	listed, err := m.live.Segments(ctx)
	if err != nil {
		return err
	}
	past := eventlog.Position(1)
	if n := len(listed); n > 0 {
		past = listed[n-1].Past
	}
	head, err := m.live.Head(ctx)
	if err != nil || head < past+part || past > 20*part {
		return err
	}
	s, err := m.files.Write(ctx, eventlog.ID{1}, past, past+part, m.ReadAll(ctx, past-1, eventlog.Filter{}, 7))
	if err == nil {
		err = m.live.KeepSegment(ctx, s)
	}
	if err == nil {
		_, err = m.live.Drop(ctx, s.Past, rule())
	}
	return err
}

// A partly archived log keeps the contract of stores.
func TestContract(t *testing.T) {
	engines := map[string]func(t *testing.T) *engine{
		"embedded": func(t *testing.T) *engine { return onEmbedded(t.TempDir(), nil) },
		"postgres": func(t *testing.T) *engine { return onPostgres(postgresURL(t), nil) },
	}
	for name, make := range engines {
		t.Run(name, func(t *testing.T) {
			opened, moved := 0, 0
			storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
				e, files := make(t), archive.NewFiles(archive.Dir(t.TempDir()), nil)
				open := func() storetest.Log {
					store := e.open()
					return &midway{Store: archive.NewStore(store, files), live: store, files: files, t: t}
				}
				log := open()
				opened++
				t.Cleanup(func() {
					if segments, err := log.(*midway).live.Segments(context.Background()); err == nil {
						moved += len(segments)
					}
					e.close() //nolint:errcheck // the tests that care have looked
				})
				return storetest.Opened[storetest.Log]{
					Port: log, Close: e.close,
					Reopen: func() storetest.Log { check(t, e.close()); return open() },
				}
			})
			if opened > 0 && moved < 20 { // without a Postgres every test was skipped
				t.Errorf("%d segments in the whole suite", moved)
			}
		})
	}
}
