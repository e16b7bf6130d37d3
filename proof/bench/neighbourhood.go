package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// neighbourhood is the environment of one run: its own Tempo chain, store and service, with an
// API key for each of ten clients.
type neighbourhood struct {
	neighbourly
	half
	place    *place
	node     *node
	service  *rig.Service
	url      string   // where payments are posted
	tokens   []string // API keys by client
	operator string   // API key for profiles; empty without profiles
	client   *http.Client
	ends     []func(context.Context) error
}

// besideOne performs one run.
func (b *bench) besideOne(ctx context.Context, engine string, h half, flooded bool) (r beside, err error) {
	r = beside{Half: h.name, Store: engine, Flooded: flooded}
	hood := &neighbourhood{neighbourly: b.scale.beside, half: h, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
	defer hood.client.CloseIdleConnections()
	defer func() { err = errors.Join(err, hood.end(ctx)) }()
	if err := hood.open(ctx, b, engine); err != nil {
		return r, err
	}
	meter, err := newMeter(ctx, engine, hood.service.Pid())
	if err != nil {
		return r, err
	}
	all := hood.bills(flooded)
	var tenth *tenthClient
	if flooded {
		if tenth, err = hood.hire(ctx, all); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, tenth.dismiss()) }()
	}
	stopProfile := b.profileOf(ctx, hood, fmt.Sprintf("%s-%s-flooded-%t", engine, h.name, flooded))
	before := meter.read()
	if flooded {
		if err := tenth.strike(); err != nil {
			return r, err
		}
	}
	hood.pay(ctx, all)
	if flooded {
		if r.Flood, err = tenth.answers(); err != nil {
			return r, err
		}
	}
	used := meter.read().since(before)
	r.CPU = (used.service + used.server).Seconds()
	r.Idle, r.Others = used.shares()
	if err := stopProfile(); err != nil {
		return r, err
	}
	hood.judge(ctx, all, &r)
	return r, nil
}

// open starts the chain and the service, after creating the clients' keys.
func (hood *neighbourhood) open(ctx context.Context, b *bench, engine string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if hood.place, err = b.fresh(ctx, engine); err != nil {
		return err
	}
	hood.ends = append(hood.ends, hood.place.remove)
	if hood.node, err = startNode(ctx, 1, b.scale.blockTime); err != nil {
		return err
	}
	hood.ends = append(hood.ends, func(context.Context) error { return hood.node.close() })
	hood.node.SetBaseFee(baseFee)
	if err := hood.node.block(ctx); err != nil { // from this block on the service sees the fee
		return err
	}
	for i := range goodClients + 1 {
		token, err := hood.createKey(ctx, clientName(i), "submit,read,cancel,rpc")
		if err != nil {
			return err
		}
		hood.tokens = append(hood.tokens, token)
	}
	if b.profile != "" {
		if hood.operator, err = hood.createKey(ctx, "operator", "admin"); err != nil {
			return err
		}
	}
	if hood.service, err = hood.prepared(b.profile != ""); err != nil {
		return err
	}
	hood.ends = append(hood.ends, hood.service.Stop)
	if err := hood.service.Start(ctx); err != nil {
		return err
	}
	hood.url = hood.service.URL
	if hood.relay {
		hood.url, err = relaying{}.at(hood.service)
	}
	return err
}

// baseFee is the chain's base fee per gas: a quarter of the clients' offers.
const baseFee = 10_000_000_000

// clientName is the client's name on its key.
func clientName(i int) string { return fmt.Sprintf("client-%d", i) }

// createKey creates a client's API key as an operator does.
func (hood *neighbourhood) createKey(ctx context.Context, client, scopes string) (token string, err error) {
	args := append([]string{"keys", "create", "--name", client, "--client", client, "--scope", scopes}, hood.place.flags()...)
	made, err := rig.Run(ctx, nil, nil, hood.program, args...)
	if err != nil {
		return "", err
	}
	if made.Status != 0 {
		return "", fmt.Errorf("keys create: %s", made.Says())
	}
	return strings.TrimSpace(made.Stdout), nil
}

// prepared is the service, not yet started. A relayer signs with a pool of ten accounts, and
// delivers webhooks to this machine.
func (hood *neighbourhood) prepared(profiling bool) (*rig.Service, error) {
	s := &rig.Service{Program: hood.program, Log: filepath.Join(hood.place.dir, "log")}
	s.Args = append(hood.rates(), "--chains", fmt.Sprintf("%d=%s", rig.TempoChain, hood.node.urls[0]),
		"--confirmations", fmt.Sprintf("%d=1", rig.TempoChain), "--broadcaster-fanout", "1")
	s.Args = append(s.Args, hood.place.flags()...)
	if profiling {
		s.Args = append(s.Args, "--profiling")
	}
	if !hood.relay {
		return s, nil
	}
	var signers []string
	for i := range wallet.Devs {
		s.Env = append(s.Env, fmt.Sprintf("RELAYER_PRIVATE_KEY_%d=%s", i, wallet.DevSecret(i)))
		signers = append(signers, wallet.Dev(i).Address().String())
	}
	s.Env = append(s.Env, relayListen+"=127.0.0.1:0")
	secrets := filepath.Join(hood.place.dir, "webhooks")
	s.Args = append(s.Args, "--signers-environment", "--signers-allowed", strings.Join(signers, ","),
		"--pools", relayPool+"="+strings.Join(signers, ","), "--lane-trusted", "1",
		"--webhooks-secrets-file", secrets, "--webhooks-development")
	// The secret needs no security: 24 zero bytes in base64.
	return s, os.WriteFile(secrets, []byte("whsec_"+strings.Repeat("AAAA", 8)+"\n"), 0o600)
}

func (hood *neighbourhood) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for i := len(hood.ends) - 1; i >= 0; i-- {
		errs = append(errs, hood.ends[i](ctx))
	}
	return errors.Join(errs...)
}

// profileMost is the maximum length of a profile in seconds.
const profileMost = 25

// profileOf takes a CPU profile of the service at the start of the load, if -profile is set. The
// returned function waits for it and saves it.
func (b *bench) profileOf(ctx context.Context, hood *neighbourhood, name string) func() error {
	if b.profile == "" {
		return func() error { return nil }
	}
	taken := make(chan error, 1)
	go func() {
		taken <- func() error {
			seconds := min(int(hood.lasts/time.Second), profileMost)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", hood.service.Metrics, seconds), nil)
			if err != nil {
				return err
			}
			req.Header.Set("X-Api-Key", hood.operator)
			res, err := hood.client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close() //nolint:errcheck // it is only read
			profile, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("profile: %s: %.300s", res.Status, profile)
			}
			return os.WriteFile(filepath.Join(b.profile, "neighbours-"+name+".pprof"), profile, 0o644) //nolint:gosec // for everybody
		}()
	}()
	return func() error { return <-taken }
}
