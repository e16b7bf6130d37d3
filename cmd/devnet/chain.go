package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/cmd/internal/tools"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

const (
	chainID       = chain.ID(42431) // Tempo's test network
	blockTime     = time.Second     // anvil counts in whole seconds
	fetchPatience = 2 * time.Minute // for anvil; after that, auto uses the simulated chain
)

// chainKind is the kind of chain to start.
type chainKind string

const (
	autoChain      chainKind = "auto"
	anvilChain     chainKind = "anvil"
	simulatedChain chainKind = "simulated"
)

func parseChainKind(text string) (chainKind, error) {
	switch kind := chainKind(text); kind {
	case autoChain, anvilChain, simulatedChain:
		return kind, nil
	}
	return "", fmt.Errorf("--chain must be anvil, simulated or auto, not %q", text)
}

// devChain is a Tempo chain that runs as long as this program.
type devChain struct {
	about string // description for people
	url   string
	stop  func() error
}

// standardNode is the address of a chain's node: where programs look for anvil.
const standardNode = "127.0.0.1:8545"

// nodeListener returns a listener on the wanted address of the chain. If it is taken, and the user has
// not named it, it is on another port.
func nodeListener(ctx context.Context, o options) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.node)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("--chain-listen must be an address of this machine with a port, such as %s: the chain obeys everybody who reaches it", standardNode)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.node)
	if err != nil && o.anyNode {
		return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	return listener, err
}

func startChain(ctx context.Context, o options, stderr io.Writer) (*devChain, error) {
	listener, err := nodeListener(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.chain == simulatedChain {
		return simulate(listener, "as requested"), nil
	}
	fetching, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	anvil, err := tools.Box{Dir: o.tools, Say: stderr}.Anvil(fetching)
	switch {
	case err == nil:
		port := listener.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // it listens on TCP
		if err := listener.Close(); err != nil {    // anvil listens there itself
			return nil, err
		}
		return startAnvil(ctx, anvil, o.data, port)
	case ctx.Err() != nil:
		return nil, errors.Join(ctx.Err(), listener.Close())
	case o.chain == anvilChain || o.data != "":
		return nil, errors.Join(fmt.Errorf("anvil is not available: %w", err), listener.Close())
	}
	return simulate(listener, "because anvil is not available: "+err.Error()), nil
}

// startAnvil keeps the chain in the folder data, if given: the service's log is of no use
// without its chain.
func startAnvil(ctx context.Context, program tools.Tool, data string, port int) (*devChain, error) {
	flags := append(server.TempoFlags(), "--no-cors", "--block-time", fmt.Sprint(blockTime.Seconds()))
	if data != "" {
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		flags = append(flags, "--state", filepath.Join(data, "chain.json"))
	}
	anvil, err := server.NewAnvil(program.Path, flags...)
	if err != nil {
		return nil, err
	}
	anvil.At(port)
	if err := anvil.Start(ctx); err != nil {
		return nil, errors.Join(err, anvil.Remove())
	}
	return &devChain{
		about: fmt.Sprintf("anvil %s (%s) --network tempo, a block a second", program.Version, program.From),
		url:   anvil.URL(), stop: anvil.Remove,
	}, nil
}

// simulate starts the built-in chain. It has Tempo's rules for nonces and windows, and runs no
// contract code.
func simulate(listener net.Listener, why string) *devChain {
	c := chaintest.New(chaintest.Options{Chain: chainID, Decode: app.Decode})
	node := &http.Server{Handler: webguard.Guard{}.Handler(c.Node("simulated")), ReadHeaderTimeout: time.Second}
	mining, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(mining, blockTime) })
	running.Go(func() { node.Serve(listener) }) //nolint:errcheck // it ends when it is closed
	return &devChain{
		about: "SIMULATED, " + why, url: "http://" + listener.Addr().String(),
		stop: func() error {
			cancel()
			err := node.Close()
			c.Close()
			running.Wait()
			return err
		},
	}
}
