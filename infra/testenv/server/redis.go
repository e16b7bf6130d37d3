package server

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Redis is a private Redis server without persistence. It keeps its port across restarts.
type Redis struct {
	program string
	dir     string
	port    int
	process *process
}

// NewRedis prepares a server without running it.
func NewRedis(program string) (*Redis, error) {
	dir, err := newFolder("wt-redis-")
	if err != nil {
		return nil, err
	}
	return &Redis{program: program, dir: dir}, nil
}

// Start runs the server and waits until it answers.
func (r *Redis) Start(ctx context.Context) error {
	if r.process != nil {
		return errors.New("redis runs already")
	}
	if r.port != 0 {
		return r.startOn(ctx, r.port)
	}
	return startOnFreePort(func(port int) error { return r.startOn(ctx, port) })
}

func (r *Redis) startOn(ctx context.Context, port int) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), r.program,
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", r.dir)
	cmd.Env = append(os.Environ(), Libraries(r.program)...)
	process, err := start(cmd, filepath.Join(r.dir, "log"), syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	r.process, r.port = process, port
	if err := process.ready(ctx, r.ping); err != nil {
		return errors.Join(err, r.Stop())
	}
	return nil
}

// ping makes sure that the answering server is ours: another program may have the port.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the answer is what counts
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("CONFIG GET dir\r\n")); err != nil {
		return err
	}
	// An array of two strings, each a line with its length and a line with its text.
	var answer [5]string
	lines := bufio.NewScanner(conn)
	for i := range answer {
		if !lines.Scan() {
			return fmt.Errorf("redis answered %q and no more: %w", answer[:i], cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
		}
		answer[i] = lines.Text()
	}
	if answer[4] != r.dir {
		return fmt.Errorf("another server, of %s, answers on port %d", answer[4], r.port)
	}
	return nil
}

// URL names the server's first database.
func (r *Redis) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", r.port) }

// Stop ends the server, which loses all its data. A second Stop is no error.
func (r *Redis) Stop() error { return end(&r.process, syscall.SIGTERM) }

// Kill ends the server like kill -9.
func (r *Redis) Kill() error { return end(&r.process, syscall.SIGKILL) }

// Remove stops the server and deletes its folder.
func (r *Redis) Remove() error {
	return errors.Join(r.Stop(), os.RemoveAll(r.dir))
}
