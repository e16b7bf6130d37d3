// Package programtest checks the signers for key management services against their [Contract]:
// with doubles of the services, over real HTTP, and with the relayer's own client.
package programtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
	"github.com/tempo-watchtower/watchtower/infra/testenv/optional"
)

// Case is a program, and a double of its service.
type Case struct {
	Program program.Program
	// Args point the program to the double.
	Args   []string
	Double *keystest.Double
	// Key is a key of the service, and Name its name there; Unknown is the name of no key.
	Key           *keystest.Key
	Name, Unknown string
	// Throttled is the service's answer to too many requests, and Refused its answer without
	// permission to use a key.
	Throttled, Refused keystest.Trouble
	// Secrets must appear nowhere: the key, and the credentials for the service.
	Secrets keystest.Secrets
}

// Listed is the key in the form of the flag -keys.
func (c Case) Listed() string { return c.Key.Address().String() + "=" + c.Name }

// output is a program's output; it may be read at any time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the program with these arguments until the test ends, and returns its address and
// its output.
func (c Case) start(t *testing.T, args ...string) (at string, log *output) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	log = &output{}
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		args := append(append([]string{"-listen", "127.0.0.1:0"}, c.Args...), args...)
		ended <- c.Program.Run(ctx, args, log, func(a net.Addr) { listening <- a })
	}()
	select {
	case a := <-listening:
		at = a.String()
	case err := <-ended:
		stop()
		t.Fatalf("it does not start: %v\n%s", err, log)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
		c.Secrets.Missing(t, "the program's output", log.String())
	})
	return at, log
}

// Fails runs the program, which must fail to start, with says in its output.
func (c Case) Fails(t *testing.T, says string, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &output{}
	err := c.Program.Run(ctx, append(append([]string{"-listen", "127.0.0.1:0"}, c.Args...), args...), log, func(net.Addr) { stop() })
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("started with %q it says %v, want %q", args, err, says)
	}
	c.Secrets.Printed(t, err)
	c.Secrets.Missing(t, "the program's output", log.String())
}

// Signer starts the program, and returns the relayer's signer for its key.
func (c Case) Signer(t *testing.T) *keys.Signer {
	t.Helper()
	at, _ := c.start(t, "-timeout", "1m", "-keys", c.Listed())
	return one(t, at)
}

// Pauses makes the service request a pause of some seconds, longer than one signature may take.
// The relayer must be told at once, with the same pause.
func (c Case) Pauses(t *testing.T, trouble keystest.Trouble, seconds int) {
	t.Helper()
	at, _ := c.start(t, "-timeout", "30s", "-keys", c.Listed())
	s := one(t, at)
	c.Double.Misbehave(trouble)
	defer c.Double.Misbehave(keystest.Trouble{})
	busy := (*keys.Busy)(nil)
	_, err := s.Sign(t.Context(), []byte("payload"))
	if want := time.Duration(seconds) * time.Second; !errors.As(err, &busy) || busy.Status != 429 || busy.After > want || busy.After <= want-30*time.Second {
		t.Errorf("%d: the relayer gets %v, want a pause of %s", trouble.Status, err, want)
	}
}

// signers are the signers that a relayer finds at the program.
func signers(t *testing.T, at string) []*keys.Signer {
	t.Helper()
	r, err := keys.NewRemote(keys.RemoteSettings{URL: "http://" + at, Timeout: time.Minute, Connections: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	all, err := r.Signers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Documented fails the test unless the page on signers describes each of a program's flags. Call
// it from a test in a folder of cmd/signers.
func Documented(t *testing.T, p program.Program) {
	t.Helper()
	var help bytes.Buffer
	if err := p.Run(t.Context(), []string{"-h"}, &help, nil); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("asked for help it ends with %v", err)
	}
	text, err := os.ReadFile("../../../docs/howto/signers.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(help.String()) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, "-") {
			continue
		}
		if seen++; !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/howto/signers.md does not describe %s", name)
		}
	}
	if seen == 0 {
		t.Errorf("no flag was found in %q", help.String())
	}
}

// Real checks a program against the contract at the real service, with the keys that a variable
// lists in the form of the flag -keys. Credentials and addresses come from the variables of the
// service's own programs. Without the variable the test is skipped.
func Real(t *testing.T, p program.Program, variable string, secrets ...string) {
	list := optional.Offered(t, variable)
	c := Case{Program: p, Secrets: keystest.Secrets{[]byte("secrets that the test does not know")}}
	for _, s := range secrets {
		if s != "" {
			c.Secrets = append(c.Secrets, []byte(s))
		}
	}
	at, _ := c.start(t, "-timeout", "1m", "-keys", list)
	for _, s := range signers(t, at) {
		t.Run(s.Address().String(), func(t *testing.T) {
			keystest.Contract(t, keystest.Case{
				Open: func(t *testing.T) *keys.Signer {
					for _, one := range signers(t, at) {
						if one.Address() == s.Address() {
							return one
						}
					}
					t.Fatal("the key is gone")
					return nil
				},
				Address: s.Address(), Kind: s.Kind(), Secrets: c.Secrets,
			})
			transactions(t, s)
		})
	}
}
