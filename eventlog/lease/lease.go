// Package lease runs work that one process at a time may do, while the process holds a lease. A lease
// saves work that others would repeat; it is no fence, because a paused process may go on for a
// moment after another has the lease. It imports eventlog/port and eventlog/pause alone.
package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Owner runs work that one replica at a time should do, by lease. Two owners may overlap
// for an instant, and the work's appends must tolerate that.
type Owner struct {
	Leases port.Leases
	Holder string        // this process
	TTL    time.Duration // the lease lapses after this long without renewal
	Renew  time.Duration // the pause between renewals, and between attempts to acquire
	// Told, when set, is called with the outcome of each attempt to acquire a lease, and
	// when a held lease is lost. It is for metrics, never for effects.
	Told func(name string, what News)
	Log  *slog.Logger
}

// News is a change in a lease, for metrics.
type News string

const (
	Won    News = "won"
	Missed News = "missed" // another holder has it
	Failed News = "failed" // the lease store could not be reached
	Lost   News = "lost"   // while held: another holder took it, or it was not renewed in time
)

func (o Owner) told(name string, what News) {
	if o.Told != nil {
		o.Told(name, what)
	}
}

// Own acquires the lease, runs work while it is held, and tries again after work has ended
// or the lease was lost. When ctx ends, it waits for work, releases the lease, and returns.
func (o Owner) Own(ctx context.Context, name string, work func(ctx context.Context) error) {
	for ctx.Err() == nil {
		held, err := o.Once(ctx, name, func(ctx context.Context) error {
			o.Log.Info("lease won", "lease", name)
			return work(ctx)
		})
		switch {
		case err == nil || ctx.Err() != nil:
		case held:
			o.Log.Warn("work under a lease failed", "lease", name, "err", err)
		default:
			o.Log.Warn("the lease store could not be reached", "lease", name, "err", err)
		}
		_ = pause.For(ctx, o.Renew) // the loop checks ctx
	}
}

// Once runs work if the lease is free now, waits for work to end, and releases the lease.
// held is false if another holder has it. If the lease is lost, work's context ends.
func (o Owner) Once(ctx context.Context, name string, work func(ctx context.Context) error) (held bool, err error) {
	asked := time.Now()
	held, err = o.Leases.Acquire(ctx, name, o.Holder, o.TTL)
	switch {
	case err != nil:
		o.told(name, Failed)
		return false, err
	case !held:
		o.told(name, Missed)
		return false, nil
	}
	o.told(name, Won)
	return true, o.hold(ctx, name, asked, work)
}

// hold runs work until it ends, the lease is lost, or ctx ends.
func (o Owner) hold(ctx context.Context, name string, asked time.Time, work func(ctx context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()

	var err error
	running := true
	for over := false; !over; {
		// Trusted for less than its term, counted from before the request.
		trusted := asked.Add(o.TTL - o.TTL/6)
		select {
		case err = <-ended:
			running, over = false, true
		case <-time.After(min(o.Renew, time.Until(trusted))):
			if asked, over = o.renewed(ctx, name, asked, trusted); over {
				o.told(name, Lost)
			}
		case <-ctx.Done():
			over = true
		}
	}
	stop()
	if running {
		err = <-ended
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.TTL)
	defer cancel()
	if err := o.Leases.Release(release, name, o.Holder); err != nil {
		o.Log.Warn("the lease could not be released, it will expire", "lease", name, "err", err)
	}
	return err
}

// renewed renews the lease. lost is true if another holder has it, or if it is no longer
// trusted.
func (o Owner) renewed(ctx context.Context, name string, asked, trusted time.Time) (since time.Time, lost bool) {
	now := time.Now()
	ask, cancel := context.WithDeadline(ctx, trusted)
	defer cancel()
	held, err := o.Leases.Acquire(ask, name, o.Holder, o.TTL)
	switch {
	case err == nil && held:
		return now, false
	case err == nil:
		o.Log.Warn("lease lost to another replica", "lease", name)
		return asked, true
	}
	lost = !time.Now().Before(trusted)
	if lost {
		o.Log.Warn("lease lost: not renewed in time", "lease", name, "err", err)
	}
	return asked, lost
}
