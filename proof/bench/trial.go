package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// stand is the environment of a trial: its own chain and store, and one service or several.
type stand struct {
	trial
	counter  counter
	place    *place
	anvil    *server.Anvil
	proxy    *rig.Proxy
	services []*rig.Service
	urls     []string // of the services that get requests, for the whole trial
	client   *http.Client
	meter    meter
	seen     *sightings
	all      []transfer

	away   atomic.Bool   // while the service is down
	back   time.Duration // from its start until it was ready
	killed time.Time     // not restarted
	ends   []func(context.Context) error
}

// try runs one trial.
func (b *bench) try(ctx context.Context, engine string, t trial, c counter) (s shown, err error) {
	program := os.Getenv(testenv.AnvilVar)
	if program == "" {
		return s, fmt.Errorf("%s names no anvil", testenv.AnvilVar)
	}
	st := &stand{trial: t, counter: c, all: c.payments(t.payments, t.signers), client: &http.Client{
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

	idle := st.proxy.Calls()
	before, began := st.meter.read(), time.Now()
	l := st.load(ctx)
	st.seen.all(ctx, l.accepted())
	used := st.meter.read().since(before)
	s = shown{Run: t.name, Store: engine, Samples: len(l.finals), Cuts: st.proxy.Cuts(), Back: st.back, Methods: map[string]float64{}}
	s.Idle, s.Others = used.shares()
	l.tell(&s, st, began)
	s.ToFinal = quantiles(l.finals, time.Second)
	s.CPU = milliseconds(used.service+used.server) / float64(t.payments)
	s.Database = milliseconds(used.server) / float64(t.payments)
	for method, count := range st.proxy.Calls() {
		each := float64(count-idle[method]) / float64(t.payments)
		s.Methods[method] = each
		s.Calls += each
	}
	s.Sends = st.proxy.Calls()["eth_sendRawTransaction"]
	if t.takeover {
		if s.Back, err = st.wentOn(); err != nil {
			return s, err
		}
	}
	if t.cut > 0 && s.Cuts == 0 || t.kill > 0 && s.Back == 0 {
		return s, errors.New("the fault did not occur, so the run shows nothing")
	}
	known := l.known()
	found, err := paid(ctx, st.anvil.URL(), st.all, t.signers, func(p transfer) bool { return known[p.to] })
	s.Lost, s.Double, s.Spare = found.lost, found.double, found.spare
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
	st.seen = &sightings{url: st.anvil.URL(), at: map[chain.Address]time.Time{}}
	var pids []int
	for range 1 + st.replicas {
		if err := st.serve(ctx); err != nil {
			return err
		}
		pids = append(pids, st.services[len(st.services)-1].Pid())
	}
	if st.takeover {
		st.urls = st.urls[1:]
	}
	if st.meter, err = newMeter(ctx, engine, pids...); err != nil {
		return err
	}
	st.proxy.Cut(st.cut)
	return nil
}

// serve starts one more service. The first one of a takeover holds all lanes before another
// starts.
func (st *stand) serve(ctx context.Context) error {
	service := st.counter.service(st)
	if err := service.Start(ctx); err != nil {
		return err
	}
	first := len(st.services) == 0
	st.services = append(st.services, service)
	st.ends = append(st.ends, func(ctx context.Context) error {
		if first && !st.killed.IsZero() {
			return nil
		}
		return service.Stop(ctx)
	})
	url, err := st.counter.at(service)
	if err != nil {
		return err
	}
	st.urls = append(st.urls, url)
	if st.takeover && first {
		return holdsLanes(ctx, service, st.signers)
	}
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

// strike kills the first service as kill -9 does. Unless another is to take over, it restarts
// the service at the same address.
func (st *stand) strike(ctx context.Context) error {
	s := st.services[0]
	st.away.Store(!st.takeover)
	if p, ok := readProcess(s.Pid()); ok {
		st.meter.gone += p.used
	}
	s.Kill()
	if st.takeover {
		st.killed = time.Now()
		return nil
	}
	st.counter.stay(s, st.urls[0])
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

// neverFinal counts the payments that the service does not report executed and final.
func (st *stand) neverFinal(ctx context.Context, accepted []transfer) (n int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range accepted {
		if !st.becomesFinal(ctx, p) {
			n++
		}
	}
	return n
}

func (st *stand) becomesFinal(ctx context.Context, p transfer) bool {
	for {
		if final, err := st.counter.final(ctx, st.urls[0], p); err == nil && final {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(sightEvery):
		}
	}
}
