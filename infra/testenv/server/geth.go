package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// GethChain is the id of the chain of go-ethereum's developer mode.
const GethChain chain.ID = 1337

// Geth is a private go-ethereum development chain without persistence.
type Geth struct {
	program string
	period  int // seconds between blocks
	rich    []chain.Address
	dir     string
	url     string
	process *process
}

// NewGeth prepares a chain without running it. It makes a block every period seconds, and the
// rich accounts have funds.
func NewGeth(program string, period int, rich ...chain.Address) (*Geth, error) {
	dir, err := os.MkdirTemp("", "wt-geth-")
	if err != nil {
		return nil, err
	}
	return &Geth{program: program, period: period, rich: rich, dir: dir}, nil
}

// Start makes the chain, runs it, and waits until it answers. It may be called once.
func (g *Geth) Start(ctx context.Context) error {
	if g.process != nil {
		return errors.New("geth runs already")
	}
	data := filepath.Join(g.dir, "data")
	genesis, err := g.genesis(ctx)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, g.program, "--datadir", data, "init", genesis).CombinedOutput(); err != nil {
		return fmt.Errorf("geth init: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), g.program, "--datadir", data,
		"--dev", "--dev.period", strconv.Itoa(g.period), "--port", "0", "--authrpc.port", "0", "--nodiscover", "--maxpeers", "0", "--ipcdisable",
		"--http", "--http.addr", "127.0.0.1", "--http.port", "0", "--http.api", "eth,net,web3,txpool", "--cache", "64")
	if g.process, err = start(cmd, g.Log(), syscall.SIGTERM); err != nil {
		return fmt.Errorf("start geth: %w", err)
	}
	if err := g.process.ready(ctx, g.listens); err != nil {
		return errors.Join(err, g.Stop())
	}
	return nil
}

// genesis writes the developer mode's genesis, with funds for the rich accounts.
func (g *Geth) genesis(ctx context.Context) (file string, err error) {
	text, err := exec.CommandContext(ctx, g.program, "--dev", "dumpgenesis").Output()
	if err != nil {
		return "", fmt.Errorf("geth dumpgenesis: %w", err)
	}
	var all map[string]json.RawMessage
	var alloc map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", fmt.Errorf("geth dumpgenesis: %w", err)
	}
	if err := json.Unmarshal(all["alloc"], &alloc); err != nil {
		return "", fmt.Errorf("geth dumpgenesis: %w", err)
	}
	for _, a := range g.rich {
		alloc[a.String()] = map[string]string{"balance": "0x21e19e0c9bab2400000"} // 10,000 ether
	}
	if all["alloc"], err = json.Marshal(alloc); err != nil {
		return "", err
	}
	if text, err = json.Marshal(all); err != nil {
		return "", err
	}
	file = filepath.Join(g.dir, "genesis.json")
	return file, os.WriteFile(file, text, 0o600)
}

// gethListens is geth's log line once its port is open.
var gethListens = regexp.MustCompile(`(?m)HTTP server started +endpoint=(127\.0\.0\.1:\d+)`)

func (g *Geth) listens(context.Context) error {
	log, err := os.ReadFile(g.Log())
	if err != nil {
		return err
	}
	line := gethListens.FindSubmatch(log)
	if line == nil {
		return errors.New("not listening yet")
	}
	g.url = "http://" + string(line[1])
	return nil
}

// URL is the chain's JSON-RPC URL, over HTTP.
func (g *Geth) URL() string { return g.url }

// Log is the path of geth's output.
func (g *Geth) Log() string { return filepath.Join(g.dir, "log") }

// Stop ends the chain.
func (g *Geth) Stop() error { return end(&g.process, syscall.SIGTERM) }

// Remove stops the chain and deletes its files.
func (g *Geth) Remove() error { return errors.Join(g.Stop(), os.RemoveAll(g.dir)) }
