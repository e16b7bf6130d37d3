//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package embedded

import (
	"errors"
	"fmt"
	"os"
)

// lock refuses. Two processes on one directory would corrupt each other's view of it, and this
// system has no tested lock that ends with its process.
func lock(dir string) (*os.File, error) {
	return nil, fmt.Errorf("embedded store %s: %w on this operating system; use Postgres", dir, errors.ErrUnsupported)
}

// lockShadow refuses for the same reason.
func lockShadow(name string) (*os.File, error) { return lock(name) }
