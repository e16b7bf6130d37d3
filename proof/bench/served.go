package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// served is a running service with its own chain and store.
type served struct {
	*rig.Service
	node    *node
	place   *place
	meter   meter
	control control
}

// serve starts a service with the default settings, except that every attempt asks all
// endpoints, so that calls can be counted.
func (b *bench) serve(ctx context.Context, engine string) (s *served, err error) {
	s = &served{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end(ctx))
		}
	}()
	if s.place, err = b.fresh(ctx, engine); err != nil {
		return s, err
	}
	if s.node, err = startNode(ctx, b.fanout, b.scale.blockTime); err != nil {
		return s, err
	}
	s.Service = &rig.Service{
		Program: b.program, Log: filepath.Join(s.place.dir, "log"),
		Args: append([]string{"--chains", fmt.Sprintf("%d=%s", rig.TempoChain, strings.Join(s.node.urls, ",")), "--broadcaster-fanout", strconv.Itoa(b.fanout)}, s.place.flags()...),
	}
	if b.profile != "" {
		s.control = control{socket: filepath.Join(s.place.dir, "control"), dir: b.profile, engine: engine}
		s.Env = []string{controlVar + "=" + s.control.socket}
	}
	starting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Start(starting); err != nil {
		return s, err
	}
	s.meter, err = newMeter(ctx, engine, s.Pid())
	return s, err
}

// patience limits steps that normally take a second.
const patience = time.Minute

// end stops the service and removes its data.
func (s *served) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	if s.Service != nil {
		errs = append(errs, s.Stop(ctx))
	}
	if s.node != nil {
		errs = append(errs, s.node.close())
	}
	if s.place != nil {
		errs = append(errs, s.place.remove(ctx))
	}
	return errors.Join(errs...)
}

// phase runs a part of a measurement and returns its time and processor use.
func (s *served) phase(ctx context.Context, name string, work func(context.Context) error) (time.Duration, spent, error) {
	if err := s.control.start(ctx); err != nil {
		return 0, spent{}, err
	}
	before, began := s.meter.read(), time.Now()
	err := work(ctx)
	took, used := time.Since(began), s.meter.read().since(before)
	return took, used, errors.Join(err, s.control.save(ctx, name))
}

// health is the service's progress according to /health.
type health struct {
	Heads []struct {
		Head  uint64 `json:"head"`
		Final uint64 `json:"final"`
	} `json:"heads"`
	Readers []struct {
		Name string `json:"name"`
		Lag  uint64 `json:"lag"`
	} `json:"readers"`
}

func (s *served) health(ctx context.Context) (h health, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/health", nil)
	if err != nil {
		return h, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return h, err
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	if res.StatusCode != http.StatusOK {
		return h, fmt.Errorf("/health answered %s", res.Status)
	}
	return h, json.NewDecoder(res.Body).Decode(&h)
}

// caughtUp reports whether queue and read models have processed the whole log.
func (h health) caughtUp() bool {
	for _, r := range h.Readers {
		if r.Lag > 0 {
			return false
		}
	}
	return len(h.Readers) > 0
}

// sealing is the number of blocks allowed to record the consequences of the final block: the
// service processes a thousand transactions per poll of the chain.
const sealing = 3

// final reports whether the service has recorded all consequences of this block.
func (h health) final(block uint64) bool {
	return h.caughtUp() && len(h.Heads) == 1 && h.Heads[0].Final >= block+sealing
}

// settled checks that the service reports each payment executed and final.
func (s *served) settled(ctx context.Context, payments []rig.Payment) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range payments {
		if _, err := rig.Await(ctx, s.URL, p.Hash, rig.Sealed); err != nil {
			return fmt.Errorf("its block is final: %w", err)
		}
	}
	return nil
}

// askEvery is the polling interval of the service's health: long enough not to affect
// measurements.
const askEvery = 50 * time.Millisecond

// until waits until the service's health satisfies want twice in a row: the log may grow while
// the readers' positions are read.
func (s *served) until(ctx context.Context, want func(health) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	for seen := 0; ; {
		h, err := s.health(ctx)
		if err != nil {
			return err
		}
		if seen++; !want(h) {
			seen = 0
		}
		if seen == 2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not catch up: %+v: %w", h, ctx.Err())
		case <-time.After(askEvery):
		}
	}
}
