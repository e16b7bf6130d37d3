package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// counter is the service under test from a client's view: it accepts payments and reports their
// status.
type counter interface {
	// payments returns n payments to request, by several signers in turn.
	payments(n, signers int) []transfer
	// service prepares a service that accepts them at a stand, without starting it.
	service(st *stand) *rig.Service
	// at returns a running service's URL; stay keeps it the same after a restart.
	at(s *rig.Service) (url string, err error)
	stay(s *rig.Service, url string)
	// request is the HTTP request for a payment.
	request(p transfer) (path string, body []byte)
	// read reads the response: an error unless the payment was accepted, or was known.
	read(status int, answer []byte) (known bool, err error)
	// final reports whether the service says that the payment was executed finally.
	final(ctx context.Context, url string, p transfer) (bool, error)
}

// common are the flags of every service of a stand.
func (st *stand) common() []string {
	return append([]string{
		"--chains", fmt.Sprintf("%d=%s", plainChain, st.proxy.URL), "--confirmations", fmt.Sprintf("%d=1", plainChain),
		"--broadcaster-fanout", "1",
	}, st.place.flags()...)
}

func (st *stand) process(program string, args []string, env ...string) *rig.Service {
	return &rig.Service{Program: program, Args: args, Env: env, Log: filepath.Join(st.place.dir, fmt.Sprintf("log-%d", len(st.services)))}
}

// delivery is the watchtower's counter: payments are signed in advance.
type delivery struct{ program string }

func (d delivery) payments(n, signers int) []transfer { return transfers(n, signers) }

func (d delivery) service(st *stand) *rig.Service {
	args := st.common()
	if st.window > 0 {
		args = append(args, "--scheduler-window", strconv.Itoa(st.window))
	}
	return st.process(d.program, args)
}

func (d delivery) at(s *rig.Service) (string, error) { return s.URL, nil }

func (d delivery) stay(s *rig.Service, url string) { s.Listen = strings.TrimPrefix(url, "http://") }

func (d delivery) request(p transfer) (string, []byte) {
	return "/v1/transactions", fmt.Appendf(nil, `{"chainId":%d,"transactions":["0x%s"]}`, plainChain, hex.EncodeToString(p.Raw))
}

func (d delivery) read(status int, answer []byte) (bool, error) {
	if status != http.StatusOK || !bytes.Contains(answer, []byte(`"ok":true`)) {
		return false, fmt.Errorf("answered %d: %.300s", status, answer)
	}
	return bytes.Contains(answer, []byte(`"alreadyKnown":true`)), nil
}

func (d delivery) final(ctx context.Context, url string, p transfer) (bool, error) {
	t, err := rig.Get(ctx, url, p.Hash)
	return err == nil && rig.Sealed(t), err
}

// relaying is the relayer's counter: payments are submitted as intents.
type relaying struct {
	program string
	// named makes each payment name its signer; otherwise any signer of the pool signs.
	named bool
}

const (
	relayPool = "all"
	// relayListen is the variable with the listen address of the API of intents.
	relayListen = "WATCHTOWER_RELAY_LISTEN"
)

func (r relaying) payments(n, signers int) []transfer { return payees(n, signers) }

// service has its keys in the environment. It reports a payment completed as soon as it is in a
// block, which is final here.
func (r relaying) service(st *stand) *rig.Service {
	env := []string{relayListen + "=127.0.0.1:0"}
	var signers []string
	for i := range st.signers {
		env = append(env, fmt.Sprintf("RELAYER_PRIVATE_KEY_%d=%s", i, wallet.DevSecret(i)))
		signers = append(signers, wallet.Dev(i).Address().String())
	}
	all := strings.Join(signers, ",")
	args := append(st.common(), "--signers-environment", "--signers-allowed", all, "--pools", relayPool+"="+all, "--lane-trusted", "1")
	if st.window > 0 {
		args = append(args, "--lane-budget", strconv.Itoa(st.window))
	}
	return st.process(r.program, args, env...)
}

func (r relaying) at(s *rig.Service) (string, error) {
	var said struct{ Relay string }
	if !s.Said("listening for intents", &said) {
		return "", fmt.Errorf("the relayer does not say where it listens for intents:\n%s", s.Tail())
	}
	return said.Relay, nil
}

func (r relaying) stay(s *rig.Service, url string) {
	s.Env = append(s.Env, relayListen+"="+strings.TrimPrefix(url, "http://"))
}

func (r relaying) from(p transfer) intent.From {
	if a := wallet.Dev(p.signer).Address(); r.named {
		return intent.From{Signer: &a}
	}
	return intent.From{Pool: relayPool}
}

func (r relaying) request(p transfer) (string, []byte) {
	who, from := "pool", r.from(p)
	name := from.Pool
	if from.Signer != nil {
		who, name = "signer", from.Signer.String()
	}
	return "/v1/intents", fmt.Appendf(nil, `{"chainId":%d,"key":%q,%q:%q,"to":%q,"value":"1","gas":{"limit":%d}}`,
		plainChain, p.to, who, name, p.to, transferGas)
}

func (r relaying) read(status int, answer []byte) (bool, error) {
	if status != http.StatusAccepted {
		return false, fmt.Errorf("answered %d: %.300s", status, answer)
	}
	return bytes.Contains(answer, []byte(`"alreadyKnown":true`)), nil
}

func (r relaying) final(ctx context.Context, url string, p transfer) (bool, error) {
	status, err := rig.IntentStatus(ctx, url, intent.ID("", r.from(p), p.to.String()))
	return status == intent.StatusCompleted, err
}
