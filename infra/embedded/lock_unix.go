//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// lock locks the directory for this process, until the file is closed or the process ends.
// SQLite itself would admit several processes, but the single writer, its caches and the waking
// of readers work within one process.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32)) // only for the error text
		f.Close()                                      //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("embedded store %s is in use by another process %s", dir, holder)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "(pid %d)", os.Getpid())
	}
	if err != nil {
		f.Close() //nolint:errcheck // the first error is told
		return nil, fmt.Errorf("lock embedded store %s: %w", dir, err)
	}
	return f, nil
}

// lockShadow locks a shadow for this process, until the file is closed or the process ends.
func lockShadow(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = eventlog.ErrBusy
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
}
