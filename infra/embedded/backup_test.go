package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

var backupTime = time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC)

func notReady(string, embedded.Backup) error { return nil }

// keep stores a payload and then an event that needs it, as a submission does.
func keep(t *testing.T, db *embedded.DB, name eventlog.Stream) {
	t.Helper()
	if err := db.Payloads().Put(t.Context(), []payload.Sealed{crashPayload(name)}); err != nil {
		t.Error(err)
	}
	if _, err := db.Log().Append(t.Context(), name, 0, crashEvents(name)...); err != nil {
		t.Error(err)
	}
}

// streams are the names of a log's streams, by their first events.
func streams(t *testing.T, db *embedded.DB) (names []eventlog.Stream) {
	t.Helper()
	for batch, err := range db.Log().ReadAll(t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Version == 1 {
				names = append(names, e.Stream)
			}
		}
	}
	return names
}

// A copy that is made while events are appended has all that were there when it began, none in part, and
// every payload that they need.
func TestBackupWhileAppending(t *testing.T) {
	dir, to, restored := t.TempDir(), filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "store")
	db, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, db.Close()) }()
	for i := range 200 {
		keep(t, db, eventlog.Stream(fmt.Sprint("before-", i)))
	}
	stop := make(chan struct{})
	var appending sync.WaitGroup
	for w := range 4 {
		appending.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					keep(t, db, eventlog.Stream(fmt.Sprint("while-", w, "-", i)))
				}
			}
		})
	}
	b, err := embedded.MakeBackup(t.Context(), dir, "", to, backupTime, nil)
	close(stop)
	appending.Wait()
	check(t, err)
	if !b.At.Equal(backupTime) || b.Head < 600 || len(b.Files) != 2 {
		t.Errorf("%+v", b)
	}
	again, err := embedded.Restore(t.Context(), to, restored, "", nil, notReady)
	check(t, err)
	if again.Head != b.Head {
		t.Errorf("restored to %d, backed up to %d", again.Head, b.Head)
	}
	copied, err := embedded.Open(restored, embedded.Options{})
	check(t, err)
	defer func() { check(t, copied.Close()) }()
	head, err := copied.Log().Head(t.Context())
	check(t, err)
	names := streams(t, copied)
	if head != b.Head || len(names) < 200 || int(head) != 3*len(names) {
		t.Errorf("head %d of %d, %d streams", head, b.Head, len(names))
	}
	for _, name := range names {
		want := crashPayload(name)
		got, err := copied.Payloads().Get(t.Context(), want.Chain, want.Hash)
		if err != nil || !bytes.Equal(got.Bytes, want.Bytes) || !bytes.Equal(got.Wrapped, want.Wrapped) {
			t.Fatalf("the payload of %s: %v", name, err)
		}
	}
	keep(t, copied, "after")
}

// backedUp is a store with an event, and a backup of it.
func backedUp(t *testing.T) (to string) {
	t.Helper()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	keep(t, db, "one")
	check(t, db.Close())
	_, err = embedded.MakeBackup(t.Context(), dir, "", to, backupTime, nil)
	check(t, err)
	return to
}

func TestBackupsNeedAnEmptyFolder(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	check(t, os.WriteFile(filepath.Join(to, "kept"), nil, 0o600))
	if _, err := embedded.MakeBackup(t.Context(), dir, "", to, backupTime, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with a file: %v", err)
	}
	if _, err := embedded.MakeBackup(t.Context(), dir, "", filepath.Join(t.TempDir(), "new"), backupTime, nil); err == nil {
		t.Error("a directory without a store was backed up")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embedded.MakeBackup(ctx, dir, "", t.TempDir(), backupTime, nil); err == nil {
		t.Error("a canceled backup succeeded")
	}
}

// A backup that is damaged, or names files outside of a store, restores nothing, and the directory does not
// open until a restore has succeeded.
func TestDamagedBackups(t *testing.T) {
	flip := func(name string) func(t *testing.T, from string) {
		return func(t *testing.T, from string) {
			text, err := os.ReadFile(filepath.Join(from, name))
			check(t, err)
			text[len(text)/2] ^= 1
			check(t, os.WriteFile(filepath.Join(from, name), text, 0o600))
		}
	}
	manifest := func(change func(b *embedded.Backup)) func(t *testing.T, from string) {
		return func(t *testing.T, from string) {
			var b embedded.Backup
			text, err := os.ReadFile(filepath.Join(from, "backup.json"))
			check(t, err)
			check(t, json.Unmarshal(text, &b))
			change(&b)
			text, err = json.Marshal(b)
			check(t, err)
			check(t, os.WriteFile(filepath.Join(from, "backup.json"), text, 0o600))
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, from string)
		says   string
	}{
		{"a changed log", flip("events.db"), "damaged"},
		{"changed keys", flip("keys.db"), "damaged"},
		{"cut off", func(t *testing.T, from string) { check(t, os.Truncate(filepath.Join(from, "events.db"), 4096)) }, "damaged"},
		{"without its list", func(t *testing.T, from string) { check(t, os.Remove(filepath.Join(from, "backup.json"))) }, "no complete backup"},
		{"a list that is no JSON", func(t *testing.T, from string) { check(t, os.Truncate(filepath.Join(from, "backup.json"), 9)) }, "backup.json"},
		{"without keys", manifest(func(b *embedded.Backup) { b.Files = b.Files[:1] }), "does not name keys.db"},
		{"a newer form", manifest(func(b *embedded.Backup) { b.Version = 2 }), "form 2"},
		{"a file elsewhere", manifest(func(b *embedded.Backup) { b.Files[0].Name = "../events.db" }), "does not name events.db"},
		{"one more file elsewhere", manifest(func(b *embedded.Backup) {
			b.Files = append(b.Files, embedded.Copied{Name: "archive/../../x.segment"})
		}), "no file of a store"},
		{"segments without an archive", manifest(func(b *embedded.Backup) {
			b.Files = append(b.Files, embedded.Copied{Name: "archive/1-2.segment"})
		}), "no archive is configured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, dir := backedUp(t), filepath.Join(t.TempDir(), "store")
			c.damage(t, from)
			_, err := embedded.Restore(t.Context(), from, dir, "", nil, notReady)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(dir, "events.db")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a log: %v", err)
			}
		})
	}
}

// A directory opens only after a restore whose preparation has succeeded; the restore can be repeated.
func TestUnfinishedRestore(t *testing.T) {
	from, dir := backedUp(t), filepath.Join(t.TempDir(), "store")
	stopped := errors.New("stopped")
	if _, err := embedded.Restore(t.Context(), from, dir, "", nil, func(string, embedded.Backup) error { return stopped }); !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	if db, err := embedded.Open(dir, embedded.Options{}); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("opened a store that is not ready: %v", errors.Join(err, db.Close()))
	}
	_, err := embedded.Restore(t.Context(), from, dir, "", nil, func(dir string, _ embedded.Backup) error {
		db, err := embedded.Open(dir, embedded.Options{})
		if err != nil {
			return err
		}
		keep(t, db, "ready")
		return db.Close()
	})
	check(t, err)
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	if got := fmt.Sprint(streams(t, db)); got != "[one ready]" {
		t.Errorf("restored %s", got)
	}
	check(t, db.Close())
	if _, err := embedded.Restore(t.Context(), from, dir, "", nil, notReady); err == nil || !strings.Contains(err.Error(), "has a store already") {
		t.Errorf("a store was overwritten: %v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
