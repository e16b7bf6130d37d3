package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// TracePrograms are what Inject needs in PATH.
func TracePrograms() []string { return []string{"strace"} }

// Injection has the kernel answer a process's system calls as strace says.
type Injection struct {
	log string
	cmd *exec.Cmd
}

// Flushes are the calls that bring files to the disk. Postgres brings its log there by the
// second (wal_sync_method), and tables and indexes by the first.
const (
	Flushes    = "fsync,fdatasync"
	LogFlushes = "fdatasync"
)

// Inject traces processes and all that they make, and has each of their calls of some
// kinds, such as [Flushes], answered by what (strace(1), -e inject): "error=EIO:when=30+30" fails
// some, "retval=0" claims success and does nothing. It returns once every process
// is under its hand, or has ended: those of a database server come and go.
func Inject(ctx context.Context, folder, calls, what string, pids ...int) (*Injection, error) {
	i := &Injection{log: filepath.Join(folder, fmt.Sprintf("strace-%d", time.Now().UnixNano()))}
	args := []string{"-f", "-q", "-o", i.log, "-e", "trace=" + calls, "-e", "inject=" + calls + ":" + what}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	i.cmd = exec.CommandContext(context.WithoutCancel(ctx), "strace", args...)
	i.cmd.SysProcAttr = dieWithParent()
	var said bytes.Buffer
	i.cmd.Stderr = &said
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	for {
		all, left := true, 0
		for _, pid := range pids {
			traced, there := i.traces(pid)
			all = all && (traced || !there)
			if there {
				left++
			}
		}
		if left == 0 {
			return nil, errors.Join(fmt.Errorf("processes %d have ended", pids), i.End(), errors.New(said.String()))
		}
		if all {
			return i, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), i.End(), errors.New(said.String()))
		case <-time.After(pollEvery):
		}
	}
}

// traces tells whether every thread of a process is under strace's hand, and whether
// there is the process at all. One that has ended, and waits for its parent to notice,
// is none.
func (i *Injection) traces(pid int) (traced, there bool) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is well formed
	tracer := []byte("TracerPid:\t" + strconv.Itoa(i.cmd.Process.Pid) + "\n")
	traced = true
	for _, path := range threads {
		status, err := os.ReadFile(path)
		if err != nil || bytes.Contains(status, []byte("State:\tZ")) {
			continue
		}
		there, traced = true, traced && bytes.Contains(status, tracer)
	}
	return traced, there
}

// Hits is how many flushes were answered otherwise than by the disk.
func (i *Injection) Hits() int {
	log, err := os.ReadFile(i.log)
	if err != nil {
		return 0
	}
	return bytes.Count(log, []byte("(INJECTED)"))
}

// End lets the processes go on by themselves.
func (i *Injection) End() error {
	if i.cmd.ProcessState != nil {
		return nil
	}
	_ = i.cmd.Process.Signal(syscall.SIGTERM) // strace detaches; an error means that it has ended
	var exit *exec.ExitError
	if err := i.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
