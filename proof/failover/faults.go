package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Tally counts the faults of a run.
type Tally struct {
	LeadersKilled, FollowersKilled, Resigned int
	// Vacant holds, for each change of leader, the time from the fault to the new leader.
	Vacant []time.Duration
}

func (t Tally) String() string {
	return fmt.Sprintf("%d leaders killed, %d followers killed, %d leaders resigned; a new leader stood after %s",
		t.LeadersKilled, t.FollowersKilled, t.Resigned, spread(t.Vacant))
}

// faults changes the leader of a cluster repeatedly.
type faults struct {
	Cluster
	every time.Duration
	log   func(format string, args ...any)
	tally Tally
}

const (
	statusEvery  = 50 * time.Millisecond
	recoveryMost = 2 * time.Minute // for the election of a leader, and for a started node to follow
)

// run changes the leader every interval, in three ways in turn, until stop is closed. A turn
// begins late if the cluster is not whole yet. When run returns all nodes are alive.
func (f *faults) run(ctx context.Context, stop <-chan struct{}) error {
	ticks := time.NewTicker(f.every)
	defer ticks.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		if err := f.change(ctx, turn); err != nil {
			return fmt.Errorf("fault %d: %w", turn+1, err)
		}
	}
}

// change changes the leader once, waits for the new leader, and starts the killed node again.
func (f *faults) change(ctx context.Context, turn int) error {
	status, err := f.await(ctx, Status.whole)
	if err != nil {
		return fmt.Errorf("before it: %w", err)
	}
	old, killed := status.leader(), 0
	began := time.Now()
	switch turn % 3 {
	case 0:
		killed = old
		f.tally.LeadersKilled++
		err = f.Do(ctx, Kill, old)
	case 2: // two nodes are left for the election
		killed = status.Nodes[slices.IndexFunc(status.Nodes, func(n Node) bool { return n.Number != old })].Number
		f.tally.FollowersKilled++
		err = f.Do(ctx, Kill, killed)
	}
	if killed != old {
		f.tally.Resigned++
		err = errors.Join(err, f.Do(ctx, Resign, old))
	}
	if err != nil {
		return err
	}
	vacant := false // seen without a leader: the old one may lead again
	status, err = f.await(ctx, func(s Status) bool {
		leader := s.leader()
		vacant = vacant || leader == 0
		return leader > 0 && (leader != old || vacant)
	})
	if err != nil {
		return fmt.Errorf("after it: %w", err)
	}
	stood := time.Since(began)
	f.tally.Vacant = append(f.tally.Vacant, stood)
	f.log("node %d led, node %d leads after %v", old, status.leader(), stood.Round(time.Millisecond))
	if killed == 0 {
		return nil
	}
	return f.Do(ctx, Start, killed)
}

// await polls the status until it satisfies want.
func (f *faults) await(ctx context.Context, want func(Status) bool) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, recoveryMost)
	defer cancel()
	ticks := time.NewTicker(statusEvery)
	defer ticks.Stop()
	for {
		if s, err = f.Status(ctx); err == nil && want(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("the nodes are %v: %w", s.Nodes, errors.Join(ctx.Err(), err))
		case <-ticks.C:
		}
	}
}
