// Package program is what the signers for key management services have in common: they
// take a list of keys, serve those by Web3Signer's HTTP API
// (infra/keys/web3signer), and do nothing else. Each is a module of its own, so that
// nobody else depends on what the services' libraries bring along.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Custodian is a key management service, as a program asks it. It may be used by many
// goroutines at once. Its errors are those that keys.InCustody wants: a *keys.Busy, a
// refusal when asking again is of no use, or bad luck. They hold no secret.
type Custodian interface {
	// PublicKey is that of a key, a SubjectPublicKeyInfo in DER or PEM.
	PublicKey(ctx context.Context, key string) ([]byte, error)
	// Sign signs a digest, in DER or as r s.
	Sign(ctx context.Context, key string, digest chain.Hash) ([]byte, error)
}

// Open asks the service nothing yet. It is called once, when the flags were read.
type Open func(context.Context) (Custodian, error)

// Program is one signer.
type Program struct {
	Name string // of the command
	Keys string // says how the service calls a key
	// Service declares the flags that only this program has, and gives what opens the
	// service as they say.
	Service func(*flag.FlagSet) Open
}

// Statuses that a program ends with.
const (
	statusFailed = 1
	statusUsage  = 2
)

// Main runs a program until it is told to stop, and gives its status.
func Main(p Program) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := p.Run(ctx, os.Args[1:], os.Stderr, nil)
	usage := (*usageError)(nil)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return statusUsage
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return statusFailed
	}
}

// Run reads the arguments, and serves until the context ends. Listening, if it is not
// nil, is told where.
func (p Program) Run(ctx context.Context, args []string, stderr io.Writer, listening func(net.Addr)) error {
	s, connect, err := p.settings(args, stderr)
	if err != nil {
		return err
	}
	secured, err := s.tls()
	if err != nil {
		return err
	}
	custodian, err := connect(ctx)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	held, err := open(ctx, custodian, s.keys, s.timeout)
	if err != nil {
		return err
	}
	return serve(ctx, s, secured, held, log, listening)
}
