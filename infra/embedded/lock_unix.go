//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// lock takes the directory for this process, until the file is closed or the
// process ends. SQLite itself would let several processes in, but the one writer,
// its caches and the waking of readers live in this one.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32)) // only to be helpful
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

// lockShadow takes a shadow for this process, until the file is closed or the process
// ends.
func lockShadow(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = event.ErrBusy
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
}
