package server

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged is the user for a server that refuses to run as root: nil, which means our own,
// unless we are root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and there is neither a user postgres nor a user nobody to run the server as")
}

// newFolder makes a temporary folder that other users can reach. It tries the usual place
// first, and skips a private TMPDIR.
func newFolder(pattern string) (string, error) { return newFolderIn("", pattern) }

// newFolderIn is newFolder in place, unless place is empty.
func newFolderIn(place, pattern string) (string, error) {
	parents := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if place != "" {
		parents = []string{place}
	}
	for _, parent := range parents {
		if !reachable(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, pattern)
		if err != nil {
			continue
		}
		return dir, os.Chmod(dir, 0o755)
	}
	return "", fmt.Errorf("no temporary folder that other users can reach: %s", strings.Join(parents, ", "))
}

// reachable reports whether every user may pass through a folder and its parents.
func reachable(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// unpacked splits the path of a program in a tree of unpacked packages (tree/usr/…) into the
// tree and the path within it. ok is false for a program of the system and for any other
// layout.
func unpacked(program string) (tree, within string, ok bool) {
	i := strings.LastIndex(program, "/usr/")
	if i <= 0 {
		return "", "", false
	}
	tree = program[:i]
	return tree, program[i+1:], tree != "/usr" && !strings.HasPrefix(program, "/usr/")
}

// Libraries is the environment in which a program from an unpacked tree finds its shared
// libraries; empty for any other program.
func Libraries(program string) []string {
	tree, _, ok := unpacked(program)
	if !ok {
		return nil
	}
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib", "lib"} {
		found, _ := filepath.Glob(filepath.Join(tree, pattern))
		dirs = append(dirs, found...)
	}
	return []string{"LD_LIBRARY_PATH=" + strings.Join(dirs, ":")}
}
