package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// Anvil is a private development chain. It keeps its port across restarts, and its blocks with
// the flag --state.
type Anvil struct {
	program string
	flags   []string
	dir     string // made by us; holds the log
	port    int
	process *process
}

// TempoFlags make anvil a Tempo chain with the id of its test network. T4 is the newest
// hardfork that anvil 1.7.1 supports; its default, T0, lacks expiring nonces and much else.
func TempoFlags() []string {
	return []string{"--network", "tempo", "--hardfork", "T4", "--chain-id", "42431"}
}

// NewAnvil prepares a chain without running it. The flags must not set address and port.
func NewAnvil(program string, flags ...string) (*Anvil, error) {
	dir, err := os.MkdirTemp("", "wt-anvil-")
	if err != nil {
		return nil, err
	}
	return &Anvil{program: program, flags: flags, dir: dir}, nil
}

// At makes the chain listen on a port of 127.0.0.1; 0 is any free port. Call it before Start.
func (a *Anvil) At(port int) { a.port = port }

// Start runs the chain and waits until it answers.
func (a *Anvil) Start(ctx context.Context) error {
	if a.process != nil {
		return errors.New("anvil runs already")
	}
	// With port 0 anvil finds a free port by itself, so no other program can take it first.
	args := append([]string{"--host", "127.0.0.1", "--port", strconv.Itoa(a.port)}, a.flags...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), a.program, args...)
	process, err := start(cmd, a.Log(), syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("start anvil: %w", err)
	}
	a.process = process
	if err := process.ready(ctx, a.listens); err != nil {
		return errors.Join(err, a.Stop())
	}
	return nil
}

// listening is anvil's output once its port is open.
var listening = regexp.MustCompile(`(?m)^Listening on 127\.0\.0\.1:(\d+)$`)

// listens reads the port from the log: only our own anvil writes there.
func (a *Anvil) listens(context.Context) error {
	log, err := os.ReadFile(a.Log())
	if err != nil {
		return err
	}
	line := listening.FindSubmatch(log)
	if line == nil {
		return errors.New("not listening yet")
	}
	a.port, err = strconv.Atoi(string(line[1]))
	return err
}

// URL is the chain's JSON-RPC URL, over HTTP; WebSocket uses the same port.
func (a *Anvil) URL() string { return "http://127.0.0.1:" + strconv.Itoa(a.port) }

// Log is the path of anvil's output.
func (a *Anvil) Log() string { return filepath.Join(a.dir, "log") }

// Stop ends the chain; with --state that file keeps it. A second Stop is no error.
func (a *Anvil) Stop() error { return end(&a.process, syscall.SIGTERM) }

// Kill ends the chain like kill -9.
func (a *Anvil) Kill() error { return end(&a.process, syscall.SIGKILL) }

// Remove stops the chain and deletes its log.
func (a *Anvil) Remove() error { return errors.Join(a.Stop(), os.RemoveAll(a.dir)) }
