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

// TracePrograms are the programs that Inject needs in PATH.
func TracePrograms() []string { return []string{"strace"} }

// Injection makes the kernel answer a process's system calls as strace says.
type Injection struct {
	log string
	cmd *exec.Cmd
}

// Flushes are the system calls that flush files to disk. Postgres flushes its log by LogFlushes
// (wal_sync_method), and tables and indexes by fsync.
const (
	Flushes    = "fsync,fdatasync"
	LogFlushes = "fdatasync"
)

// Inject traces processes and their children, and injects the answer of some calls, such as
// [Flushes]. The answer has the form of strace(1), -e inject: "error=EIO:when=30+30" fails some,
// "retval=0" claims success without effect. It returns once every process is traced or has
// ended: the processes of a database server come and go.
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

// traces reports whether every thread of a process is traced, and whether the process exists. A
// zombie does not count as existing.
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

// Hits is the number of injected answers.
func (i *Injection) Hits() int {
	log, err := os.ReadFile(i.log)
	if err != nil {
		return 0
	}
	return bytes.Count(log, []byte("(INJECTED)"))
}

// End stops tracing.
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
