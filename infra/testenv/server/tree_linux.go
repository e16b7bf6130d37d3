package server

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Tree lists a process and all its descendants, parents first.
func Tree(root int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // it has ended since
			continue
		}
		// pid (name) state ppid …; the name may contain any characters, also parentheses:
		// proc(5).
		pid, errPid := strconv.Atoi(string(stat[:max(bytes.IndexByte(stat, ' '), 0)]))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if errPid != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

// signalTree signals a process and all its descendants. A process that has ended meanwhile is
// no error.
func signalTree(root int, sig syscall.Signal) error {
	all, err := Tree(root)
	for _, pid := range all {
		if e := syscall.Kill(pid, sig); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Freeze stops the server and its helpers, like a pause of the whole machine.
func (p *Postgres) Freeze() error {
	if !p.Runs() {
		return nil
	}
	// Twice: a helper may have started during the first pass.
	return errors.Join(signalTree(p.Pid(), syscall.SIGSTOP), signalTree(p.Pid(), syscall.SIGSTOP))
}

// Thaw continues a frozen server.
func (p *Postgres) Thaw() error { return signalTree(p.Pid(), syscall.SIGCONT) }

// KillAll kills the server and its helpers at once, even if frozen, like a power cut.
func (p *Postgres) KillAll() error {
	if p.process == nil {
		return nil
	}
	return errors.Join(signalTree(p.Pid(), syscall.SIGKILL), p.Kill())
}
