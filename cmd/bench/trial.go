package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// stand is where a trial takes place: a chain of its own, a store of its own, and one
// service or several.
type stand struct {
	trial
	place    *place
	anvil    *server.Anvil
	proxy    *rig.Proxy
	services []*rig.Service
	urls     []string // of the services, for good
	client   *http.Client
	meter    meter
	seen     *sightings
	all      []transfer

	away atomic.Bool   // while the service is not there
	back time.Duration // from its start until it was ready
	ends []func(context.Context) error
}

// try runs one trial.
func (b *bench) try(ctx context.Context, engine string, t trial) (s shown, err error) {
	program := os.Getenv(testenv.AnvilVar)
	if program == "" {
		return s, fmt.Errorf("%s names no anvil", testenv.AnvilVar)
	}
	st := &stand{trial: t, all: transfers(t.payments, t.signers), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: peerClients},
	}}
	defer st.client.CloseIdleConnections()
	defer func() { err = errors.Join(err, st.end(ctx)) }()
	if err := st.open(ctx, b, engine, program); err != nil {
		return s, err
	}
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { st.seen.watch(watching) })
	defer watcher.Wait()
	defer stop()

	before, began := st.meter.read(), time.Now()
	l := st.load(ctx)
	st.seen.all(ctx, l.accepted())
	used := st.meter.read().since(before)
	s = shown{Run: t.name, Store: engine, Samples: len(l.finals), Cuts: st.proxy.Cuts(), Back: st.back}
	s.Idle, s.Others = used.shares()
	l.tell(&s, st, began)
	s.ToFinal = quantiles(l.finals, time.Second)
	s.CPU = milliseconds(used.service+used.server) / float64(t.payments)
	for method, count := range st.proxy.Calls() {
		s.Calls += float64(count) / float64(t.payments)
		if method == "eth_sendRawTransaction" {
			s.Sends = count
		}
	}
	if t.cut > 0 && s.Cuts == 0 || t.kill > 0 && s.Back == 0 {
		return s, errors.New("the fault did not come: nothing was shown")
	}
	known := l.known()
	s.Lost, s.Double, err = paid(ctx, st.anvil.URL(), st.all, t.signers, func(p transfer) bool { return known[p.Hash] })
	s.NeverFinal = st.neverFinal(ctx, l.accepted())
	return s, err
}

// open starts everything.
func (st *stand) open(ctx context.Context, b *bench, engine, program string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if st.place, err = b.fresh(ctx, engine); err != nil {
		return err
	}
	st.ends = append(st.ends, st.place.remove)
	if st.anvil, err = server.NewAnvil(program, "--block-time", "1"); err != nil {
		return err
	}
	st.ends = append(st.ends, func(context.Context) error { return st.anvil.Remove() })
	if err := st.anvil.Start(ctx); err != nil {
		return err
	}
	if st.proxy, err = rig.NewProxy(st.anvil.URL(), 1); err != nil {
		return err
	}
	st.ends = append(st.ends, func(context.Context) error { return st.proxy.Close() })
	st.seen = &sightings{url: st.anvil.URL(), at: map[chain.Hash]time.Time{}}
	var pids []int
	for i := range 1 + st.replicas {
		service := &rig.Service{
			Program: b.program, Log: filepath.Join(st.place.dir, fmt.Sprintf("log-%d", i)),
			Args: append([]string{
				"--chains", fmt.Sprintf("%d=%s", plainChain, st.proxy.URL), "--confirmations", fmt.Sprintf("%d=1", plainChain),
				"--broadcaster-fanout", "1",
			}, st.place.flags()...),
		}
		if st.window > 0 {
			service.Args = append(service.Args, "--scheduler-window", strconv.Itoa(st.window))
		}
		if err := service.Start(ctx); err != nil {
			return err
		}
		st.services, st.urls = append(st.services, service), append(st.urls, service.URL)
		st.ends = append(st.ends, service.Stop)
		pids = append(pids, service.Pid())
	}
	if st.meter, err = newMeter(ctx, engine, pids...); err != nil {
		return err
	}
	st.proxy.Cut(st.cut)
	return nil
}

func (st *stand) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for i := len(st.ends) - 1; i >= 0; i-- {
		errs = append(errs, st.ends[i](ctx))
	}
	return errors.Join(errs...)
}

// killAndBack kills the service as kill -9 does and starts it again at its address.
func (st *stand) killAndBack(ctx context.Context) error {
	s := st.services[0]
	s.Listen = strings.TrimPrefix(s.URL, "http://")
	st.away.Store(true)
	if p, ok := readProcess(s.Pid()); ok {
		st.meter.gone += p.used
	}
	s.Kill()
	select {
	case <-time.After(st.down):
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Start(ctx); err != nil {
		return err
	}
	st.back = time.Since(began)
	st.meter.services[0] = s.Pid()
	st.away.Store(false)
	return nil
}

// neverFinal counts what the service does not call executed for good.
func (st *stand) neverFinal(ctx context.Context, accepted []transfer) (n int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range accepted {
		if _, err := rig.Await(ctx, st.urls[0], p.Hash, rig.Sealed); err != nil {
			n++
		}
	}
	return n
}
