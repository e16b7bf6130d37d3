package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// ErrNotEmbedded: the store is not in files of this machine, so its server makes the backups.
var ErrNotEmbedded = errors.New("the store is not an embedded one: back it up with its server's own means (docs/howto/backup.md)")

// Backup copies the configured embedded store into a new folder, also while a service uses the store.
func Backup(ctx context.Context, c config.Config, to string, now time.Time, told embedded.Told) (embedded.Backup, error) {
	if c.Store.Engine != config.Embedded {
		return embedded.Backup{}, ErrNotEmbedded
	}
	return embedded.MakeBackup(ctx, c.Store.Dir, c.Archive.Dir, to, now, told)
}

// Restore puts a backup's store into the configured directory. restored, when set, appends what has to be
// in the log before anybody may open the store.
func Restore(ctx context.Context, c config.Config, from string, told embedded.Told, restored func(ctx context.Context, log port.Store, b embedded.Backup) error) (embedded.Backup, error) {
	if c.Store.Engine != config.Embedded {
		return embedded.Backup{}, ErrNotEmbedded
	}
	if within(from, c.Store.Dir) {
		return embedded.Backup{}, fmt.Errorf("the backup %s is in the directory %s, which it is to fill", from, c.Store.Dir)
	}
	return embedded.Restore(ctx, from, c.Store.Dir, c.Archive.Dir, told, func(dir string, b embedded.Backup) (err error) {
		if restored == nil {
			return nil
		}
		db, err := embedded.Open(dir, embedded.Options{})
		if err != nil {
			return err
		}
		return errors.Join(restored(ctx, db.Log(), b), db.Close())
	})
}

// within reports whether a path is in a folder.
func within(name, folder string) bool {
	full, err := filepath.Abs(name)
	top, err2 := filepath.Abs(folder)
	if errors.Join(err, err2) != nil {
		return false
	}
	rel, err := filepath.Rel(top, full)
	return err == nil && filepath.IsLocal(rel)
}
