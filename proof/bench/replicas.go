package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// fleet is the number of replicas compared with one.
const fleet = 4

// replicas compares one process with several on one Postgres, all on the same processors: the
// loss is the cost of coordination.
func (b *bench) replicas(ctx context.Context, engine string, l loads) error {
	if engine != postgresEngine {
		return nil // only one process can use an embedded store
	}
	var alone rates
	for _, n := range []int{1, fleet} {
		of := func(what, unit string) figure {
			return figure{Section: sectionReplicas, Store: engine, What: fmt.Sprintf("%d replicas: %s", n, what), Unit: unit}
		}
		got, err := b.together(ctx, engine, l, n, of)
		if err != nil {
			return fmt.Errorf("%d replicas: %w", n, err)
		}
		rate := func(what string, one, against float64) {
			f := of(what, "tx/s")
			if n > 1 {
				f.Yardstick, f.Against, f.Goal = "one replica", against, goal{Reach: true}
			}
			b.sheet.note(f, one)
		}
		rate(fmt.Sprintf("accepted in batches of %d", batchSize), got.accepted, alone.accepted)
		rate("mined, each on its own nonce key", got.mined, alone.mined)
		alone = got
	}
	return nil
}

// rates are transactions a second.
type rates struct{ accepted, mined float64 }

// together measures n replicas: their rates of acceptance and of mining.
func (b *bench) together(ctx context.Context, engine string, l loads, n int, of func(what, unit string) figure) (got rates, err error) {
	s, err := b.serve(ctx, engine)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	urls := []string{s.URL}
	for i := 1; i < n; i++ {
		another := &rig.Service{
			Program: s.Program, Args: s.Args, Log: filepath.Join(s.place.dir, fmt.Sprintf("log-%d", i)),
			Env: []string{fmt.Sprintf("%s=%s-%d", controlVar, filepath.Join(s.place.dir, "control"), i)}, // only for the profiled one
		}
		defer func() {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			err = errors.Join(err, another.Stop(stopping))
		}()
		starting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := another.Start(starting); err != nil {
			return got, err
		}
		urls, s.meter.services = append(urls, another.URL), append(s.meter.services, another.Pid())
	}
	took, used, err := s.phase(ctx, fmt.Sprintf("accept-%d", n), func(ctx context.Context) error {
		_, err := postTo(ctx, urls, l.fleet, 2*batchesOut)
		return err
	})
	if err != nil {
		return got, err
	}
	accepted := float64(len(l.fleet) * batchSize)
	b.cpu(func(what, unit string) figure { return of("accepted"+what, unit) }, used, accepted)
	if err := s.until(ctx, health.caughtUp); err != nil {
		return got, err
	}
	if err := s.node.expect(l.crew); err != nil {
		return got, err
	}
	if err := s.node.block(ctx); err != nil {
		return got, err
	}
	began := time.Now()
	var last time.Time
	_, used, err = s.phase(ctx, fmt.Sprintf("mine-%d", n), func(ctx context.Context) error {
		if _, err := postTo(ctx, urls, requests(l.crew, batchSize), batchesOut); err != nil {
			return err
		}
		last, _, err = s.node.mined(ctx, l.crew)
		return err
	})
	if err != nil {
		return got, err
	}
	mined := float64(len(l.crew))
	b.cpu(func(what, unit string) figure { return of("mined"+what, unit) }, used, mined)
	return rates{accepted / took.Seconds(), mined / last.Sub(began).Seconds()}, nil
}
