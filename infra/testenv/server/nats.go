package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// NATS is a private NATS server with JetStream. It keeps its port and its streams across
// restarts.
type NATS struct {
	program string
	dir     string
	port    int
	process *process
}

// NewNATS prepares a server without running it.
func NewNATS(program string) (*NATS, error) {
	dir, err := newFolder("wt-nats-")
	if err != nil {
		return nil, err
	}
	return &NATS{program: program, dir: dir}, nil
}

// Start runs the server and waits until it answers.
func (n *NATS) Start(ctx context.Context) error {
	if n.process != nil {
		return errors.New("nats runs already")
	}
	if n.port != 0 {
		return n.startOn(ctx, n.port)
	}
	return startOnFreePort(func(port int) error { return n.startOn(ctx, port) })
}

// name tells this server from others.
func (n *NATS) name() string { return filepath.Base(n.dir) }

func (n *NATS) startOn(ctx context.Context, port int) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), n.program, "--addr", "127.0.0.1", "--port", strconv.Itoa(port),
		"--name", n.name(), "--jetstream", "--store_dir", filepath.Join(n.dir, "streams"))
	process, err := start(cmd, filepath.Join(n.dir, "log"), syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	n.process, n.port = process, port
	if err := process.ready(ctx, n.greets); err != nil {
		return errors.Join(err, n.Stop())
	}
	return nil
}

// greets makes sure that the answering server is ours, by its name in the first line that it
// sends to a client.
func (n *NATS) greets(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the answer is what counts
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(startPatience)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "INFO ") || !strings.Contains(line, strconv.Quote(n.name())) {
		return fmt.Errorf("another server answers on port %d: %s", n.port, line)
	}
	return nil
}

// URL is the server's address.
func (n *NATS) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

// Stop ends the server, which keeps its streams. A second Stop is no error.
func (n *NATS) Stop() error { return end(&n.process, syscall.SIGTERM) }

// Remove stops the server and deletes its folder.
func (n *NATS) Remove() error { return errors.Join(n.Stop(), os.RemoveAll(n.dir)) }
