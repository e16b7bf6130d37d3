// Package server runs private Postgres and Redis servers for tests, on free ports of the
// loopback address, in their own folders, which are deleted at the end. cmd/testrun starts the
// servers that all tests share. A test that has to kill its server starts a separate one.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	startPatience = 60 * time.Second      // limit for a server to answer; initdb on a busy machine takes seconds
	stopPatience  = 15 * time.Second      // limit for a stopping server, before it is killed
	pollInterval  = 50 * time.Millisecond // between checks of a starting server
	portsTried    = 3                     // another program may take a free port before the server does
	logTailBytes  = 2048                  // bytes of a server's log quoted in an error
)

// process is a running server. Its one goroutine ends with the server.
type process struct {
	cmd     *exec.Cmd
	logPath string
	done    chan struct{} // closed once the server has ended and was reaped
}

// start runs a server with its output in a file. Where the system supports it, the server gets
// the signal end if our own process dies without stopping it.
func start(cmd *exec.Cmd, logPath string, end syscall.Signal) (*process, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the server holds the file by a descriptor of its own
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // a terminal's Ctrl-C goes only to us, and we stop the server
	dieWithParent(cmd.SysProcAttr, end)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, logPath: logPath, done: make(chan struct{})}
	go func() {
		cmd.Wait() //nolint:errcheck // a server that was told to end ends as it likes
		close(p.done)
	}()
	return p, nil
}

// ready asks the server until it answers.
func (p *process) ready(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once: %s", filepath.Base(p.cmd.Path), tail(p.logPath))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer (%w): %s", filepath.Base(p.cmd.Path), err, tail(p.logPath))
		case <-tick.C:
		}
	}
}

// end sends a signal and waits until the server has ended; it kills the server if that takes
// too long.
func (p *process) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-p.done:
		return nil
	case <-patience.C:
	}
	err := p.cmd.Process.Kill()
	<-p.done
	return errors.Join(fmt.Errorf("%s did not end within %s and was killed", filepath.Base(p.cmd.Path), stopPatience), err)
}

// end ends a server's process, if there is one.
func end(p **process, sig syscall.Signal) error {
	if *p == nil {
		return nil
	}
	err := (*p).end(sig)
	*p = nil
	return err
}

// startOnFreePort tries several ports, because another program may take one first.
func startOnFreePort(try func(port int) error) error {
	var tried error
	for range portsTried {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err = try(port); err == nil {
			return nil
		}
		tried = errors.Join(tried, err)
	}
	return tried
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port, nil
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-logTailBytes):]))
}
