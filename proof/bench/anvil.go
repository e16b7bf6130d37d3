package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// onAnvil counts the calls per delivery to a real node: anvil as a Tempo chain with a block a
// second, behind a counting proxy.
func (b *bench) onAnvil(ctx context.Context, engine string, l loads) (err error) {
	program := os.Getenv(testenv.AnvilVar)
	if program == "" {
		b.tell("%s names no anvil: its calls are not counted", testenv.AnvilVar)
		return nil
	}
	s, proxy, end, err := b.serveAnvil(ctx, engine, program)
	defer func() { err = errors.Join(err, end(context.WithoutCancel(ctx))) }()
	if err != nil {
		return err
	}
	for _, load := range []struct {
		what     string
		payments []rig.Payment
		pause    time.Duration
	}{
		{fmt.Sprintf("anvil, %d/s", b.scale.rate), l.steady, time.Second / time.Duration(b.scale.rate)},
		{fmt.Sprintf("anvil, %d at once", len(l.anvil)), l.anvil, 0},
	} {
		before := proxy.Calls()
		if err := pace(ctx, s.URL, load.payments, load.pause); err != nil {
			return err
		}
		for _, p := range load.payments {
			if _, err := rig.Await(ctx, s.URL, p.Hash, rig.Sealed); err != nil {
				return err
			}
		}
		counted := proxy.Calls()
		for method, count := range before {
			if counted[method] -= count; counted[method] == 0 {
				delete(counted, method)
			}
		}
		b.calls(func(what, unit string) figure {
			return figure{Section: sectionAnvil, Store: engine, What: load.what + what, Unit: unit}
		}, counted, float64(len(load.payments)))
	}
	return nil
}

// serveAnvil starts a service on anvil. end stops everything started, also after an error.
func (b *bench) serveAnvil(ctx context.Context, engine, program string) (s *rig.Service, proxy *rig.Proxy, end func(context.Context) error, err error) {
	var ends []func(context.Context) error
	end = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var errs []error
		for i := len(ends) - 1; i >= 0; i-- {
			errs = append(errs, ends[i](ctx))
		}
		return errors.Join(errs...)
	}
	place, err := b.fresh(ctx, engine)
	if err != nil {
		return nil, nil, end, err
	}
	ends = append(ends, place.remove)
	anvil, err := server.NewAnvil(program, append(server.TempoFlags(), "--block-time", "1")...)
	if err != nil {
		return nil, nil, end, err
	}
	ends = append(ends, func(context.Context) error { return anvil.Remove() })
	if err := anvil.Start(ctx); err != nil {
		return nil, nil, end, err
	}
	if proxy, err = rig.NewProxy(anvil.URL(), 1); err != nil {
		return nil, nil, end, err
	}
	ends = append(ends, func(context.Context) error { return proxy.Close() })
	s = &rig.Service{
		Program: b.program, Log: filepath.Join(place.dir, "log"),
		Args: append([]string{
			"--chains", fmt.Sprintf("%d=%s", rig.TempoChain, proxy.URL), "--confirmations", fmt.Sprintf("%d=2", rig.TempoChain),
			"--broadcaster-fanout", "1",
		}, place.flags()...),
	}
	ends = append(ends, s.Stop)
	return s, proxy, end, s.Start(ctx)
}

// pace posts payments one by one, with a pause between two; without a pause in batches.
func pace(ctx context.Context, url string, payments []rig.Payment, pause time.Duration) error {
	if pause == 0 {
		_, err := postAll(ctx, url, requests(payments, batchSize), batchesOut)
		return err
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	errs := make([]error, len(payments))
	var posting sync.WaitGroup
	for i, p := range payments {
		posting.Go(func() { _, errs[i] = rig.Submit(ctx, url, rig.TempoChain, p.Raw) })
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	posting.Wait()
	return errors.Join(errs...)
}
