package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
)

// fleet is how many replicas are compared with one.
const fleet = 4

// replicas compares one process with several on one Postgres, all on the same
// processors: what the several lose is what they cost each other.
func (b *bench) replicas(ctx context.Context, engine string, l loads) error {
	if engine != postgresEngine {
		return nil // an embedded store is one process's
	}
	var alone struct{ accepted, mined float64 }
	for _, n := range []int{1, fleet} {
		accepted, mined, err := b.together(ctx, engine, l, n)
		if err != nil {
			return fmt.Errorf("%d replicas: %w", n, err)
		}
		of := func(what string, against float64) figure {
			f := figure{Section: sectionReplicas, Store: engine, What: fmt.Sprintf("%d replicas: %s", n, what), Unit: "tx/s"}
			if n > 1 {
				f.Yardstick, f.Against, f.Goal = "one replica", against, goal{AtLeast: against}
			}
			return f
		}
		b.sheet.note(of(fmt.Sprintf("accepted in batches of %d", batchSize), alone.accepted), accepted)
		b.sheet.note(of("mined, each on its own nonce key", alone.mined), mined)
		alone.accepted, alone.mined = accepted, mined
	}
	return nil
}

// together measures n replicas: acceptances a second, and payments mined a second.
func (b *bench) together(ctx context.Context, engine string, l loads, n int) (accepted, mined float64, err error) {
	s, err := b.serve(ctx, engine)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	urls := []string{s.URL}
	for i := 1; i < n; i++ {
		another := &rig.Service{
			Program: s.Program, Args: s.Args, Env: s.Env, Log: filepath.Join(s.place.dir, fmt.Sprintf("log-%d", i)),
		}
		defer func() {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			err = errors.Join(err, another.Stop(stopping))
		}()
		starting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := another.Start(starting); err != nil {
			return 0, 0, err
		}
		urls = append(urls, another.URL)
	}
	began := time.Now()
	if _, err := postTo(ctx, urls, l.fleet, 2*batchesOut); err != nil {
		return 0, 0, err
	}
	accepted = float64(len(l.fleet)*batchSize) / time.Since(began).Seconds()
	if err := s.node.expect(l.crew); err != nil {
		return 0, 0, err
	}
	if err := s.node.block(ctx); err != nil {
		return 0, 0, err
	}
	began = time.Now()
	if _, err := postTo(ctx, urls, requests(l.crew, batchSize), batchesOut); err != nil {
		return 0, 0, err
	}
	last, _, err := s.node.mined(ctx, l.crew)
	return accepted, float64(len(l.crew)) / last.Sub(began).Seconds(), err
}
