package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The variables that set a run.
const (
	ForVar   = "WATCHTOWER_TEST_FAULTS_FOR"   // duration of the load; 25s
	EveryVar = "WATCHTOWER_TEST_FAULTS_EVERY" // from one change of leader to the next; 5s
	RateVar  = "WATCHTOWER_TEST_FAULTS_RATE"  // requests a second; 20
)

// Settings set a run.
type Settings struct {
	For, Every time.Duration
	Rate       int
}

// AcceptedWithin limits the 99th percentile of the time in which requests are answered.
const AcceptedWithin = 6 * time.Second

// answerMost is the client's time limit for a request. The service's own limit is 10 s.
const answerMost = 15 * time.Second

// ReadSettings reads the variables.
func ReadSettings(t *testing.T) Settings {
	t.Helper()
	s := Settings{For: 25 * time.Second, Every: 5 * time.Second, Rate: 20}
	for name, set := range map[string]func(text string) error{
		ForVar:   func(text string) (err error) { s.For, err = time.ParseDuration(text); return err },
		EveryVar: func(text string) (err error) { s.Every, err = time.ParseDuration(text); return err },
		RateVar:  func(text string) (err error) { s.Rate, err = strconv.Atoi(text); return err },
	} {
		if text := os.Getenv(name); text != "" {
			if err := set(text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if s.For <= 0 || s.Every <= 0 || s.Rate <= 0 {
		t.Fatalf("%s, %s and %s have to be more than 0", ForVar, EveryVar, RateVar)
	}
	return s
}

// Requests returns the number of requests of the run.
func (s Settings) Requests() int { return int(s.For.Seconds() * float64(s.Rate)) }

// Figures are the outcome of a run.
type Figures struct {
	Settings
	Faults  Tally
	Waits   []time.Duration // for the answers of accepted requests, shortest first
	Refused map[int]error   // by the request's number
}

func (f Figures) String() string {
	return fmt.Sprintf("%d requests in %v, %d refused; accepted after %s; %s", len(f.Waits)+len(f.Refused), f.For, len(f.Refused), spread(f.Waits), f.Faults)
}

// Judge fails the test if a request was refused, if too few leaders changed for a verdict,
// or, where time is judged, if accepting took too long.
func (f Figures) Judge(t *testing.T) {
	t.Helper()
	shown := 0
	for n, err := range f.Refused {
		if shown++; shown <= 10 {
			t.Errorf("request %d was refused: %v", n, err)
		}
	}
	rig.Within(t, percentile(f.Waits, 99), AcceptedWithin, "99 % of the requests were accepted")
	if len(f.Faults.Vacant) == 0 {
		t.Error("no leader changed: nothing was tested")
	}
}

// Run sends requests at a steady rate while the leader of a cluster changes. ask sends request
// n, counted from 0, on its own goroutine. Its error is a refusal.
func Run(ctx context.Context, t *testing.T, c Cluster, s Settings, ask func(ctx context.Context, n int) error) Figures {
	t.Helper()
	f := &faults{Cluster: c, every: s.Every, log: t.Logf}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- f.run(ctx, stop) }()
	figures := load(ctx, s, ask)
	close(stop)
	err := <-ended
	if _, late := f.await(ctx, Status.whole); errors.Join(err, late) != nil {
		t.Errorf("the cluster: %v", errors.Join(err, late))
	}
	figures.Faults = f.tally
	slices.Sort(figures.Faults.Vacant)
	return figures
}

// load sends requests at a steady rate, without waiting for earlier answers.
func load(ctx context.Context, s Settings, ask func(ctx context.Context, n int) error) Figures {
	figures := Figures{Settings: s, Refused: map[int]error{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	defer asking.Wait()
	began := time.Now()
	next := time.NewTimer(0)
	defer next.Stop()
	for n := range s.Requests() {
		next.Reset(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))))
		select {
		case <-next.C:
		case <-ctx.Done():
		}
		asking.Go(func() {
			limited, cancel := context.WithTimeout(ctx, answerMost)
			defer cancel()
			sent := time.Now()
			err := ask(limited, n)
			waited := time.Since(sent)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				figures.Refused[n] = fmt.Errorf("after %v: %w", waited.Round(time.Millisecond), err)
			} else {
				figures.Waits = append(figures.Waits, waited)
			}
		})
	}
	asking.Wait()
	slices.Sort(figures.Waits)
	return figures
}

// percentile returns a percentile of sorted durations; 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*p/100]
}

// spread describes sorted durations.
func spread(sorted []time.Duration) string {
	return fmt.Sprintf("p50 %v, p99 %v, at most %v", percentile(sorted, 50).Round(time.Millisecond),
		percentile(sorted, 99).Round(time.Millisecond), percentile(sorted, 100).Round(time.Millisecond))
}

// Percentiles sorts durations and describes them.
func Percentiles(d []time.Duration) string {
	slices.Sort(d)
	return spread(d)
}
