// Package program is the common part of the signers for key management services. They take a
// list of keys, serve them through Web3Signer's HTTP API (infra/keys/web3signer), and do nothing
// else. Each signer is its own module, so that no other program depends on the services'
// libraries.
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

// Custodian is a key management service. It is safe for concurrent use. Its errors are in the
// form of keys.InCustody: a *keys.Busy, a refusal if a retry cannot help, or a transient error.
// They contain no secret.
type Custodian interface {
	// PublicKey returns a key's SubjectPublicKeyInfo in DER or PEM.
	PublicKey(ctx context.Context, key string) ([]byte, error)
	// Sign signs a digest. The signature is DER or r s.
	Sign(ctx context.Context, key string, digest chain.Hash) ([]byte, error)
}

// Open connects to the service without a request. It is called once, after the flags were
// parsed.
type Open func(context.Context) (Custodian, error)

// Program is one signer program.
type Program struct {
	Name string // the command's name
	Keys string // the service's form of a key name, for the help
	// Service declares the program's own flags, and returns the function that connects to the
	// service with their values.
	Service func(*flag.FlagSet) Open
}

// The program's exit statuses.
const (
	statusFailed = 1
	statusUsage  = 2
)

// Main runs a program until it is told to stop, and returns its exit status.
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

// Run parses the arguments, and serves until ctx ends. listening, if not nil, is called with the
// address.
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
