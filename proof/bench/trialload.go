package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// wish is one client's request for a payment.
type wish struct {
	transfer
	began time.Time // time of the first request
	took  time.Duration
	known bool  // the service knew the payment already
	err   error // error for a well-behaved client
}

// loaded is the result of all requests.
type loaded struct {
	mu     sync.Mutex
	wishes []wish
	finals []time.Duration // of a sample: from the request until it was reported final
}

// samplesMost is the number of payments that are polled until they are final.
const samplesMost = 25

// load posts all payments as the trial says, and polls a sample.
func (st *stand) load(ctx context.Context) *loaded {
	l := &loaded{}
	work := make(chan wish)
	var clients, faults sync.WaitGroup
	for range peerClients {
		clients.Go(func() {
			for w := range work {
				st.insist(ctx, &w)
				l.mu.Lock()
				l.wishes = append(l.wishes, w)
				l.mu.Unlock()
			}
		})
	}
	if st.kill > 0 {
		faults.Go(func() {
			<-time.After(st.kill)
			if err := st.strike(ctx); err != nil {
				l.mu.Lock()
				l.wishes = append(l.wishes, wish{err: err})
				l.mu.Unlock()
			}
		})
	}
	pause := time.Duration(0)
	if st.rate > 0 {
		pause = time.Second / time.Duration(st.rate)
	}
	samples := make(chan transfer, len(st.all))
	var sampling sync.WaitGroup
	sampling.Go(func() { l.finals = st.sample(ctx, samples) })
	next := time.Now()
	for i, t := range st.all {
		if i%max(len(st.all)/samplesMost, 1) == 0 {
			samples <- t
		}
		for range 1 + st.twice(i) {
			work <- wish{transfer: t, began: time.Now()}
		}
		if next = next.Add(pause); pause > 0 {
			<-time.After(time.Until(next))
		}
	}
	close(samples)
	close(work)
	clients.Wait()
	faults.Wait()
	sampling.Wait()
	return l
}

// twice is 1 for a payment that is requested twice at once.
func (st *stand) twice(i int) int {
	if st.doubled && i%2 == 1 {
		return 1
	}
	return 0
}

// insist retries until there is a response. Errors while the service is down are expected.
func (st *stand) insist(ctx context.Context, w *wish) {
	path, body := st.counter.request(w.transfer)
	url := st.urls[int(chain.Keccak(w.to[:])[0])%len(st.urls)] + path
	for {
		away := st.away.Load()
		status, answer, err := st.post(ctx, url, body)
		if err == nil {
			w.took = time.Since(w.began)
			w.known, err = st.counter.read(status, answer)
		}
		if err == nil {
			return
		}
		if !away && !st.away.Load() || ctx.Err() != nil {
			w.err = err
			return
		}
		<-time.After(sightEvery)
	}
}

// post sends a request and reads the whole response.
func (st *stand) post(ctx context.Context, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := st.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// sampled is a payment of the sample, with the time when it was queued for posting.
type sampled struct {
	transfer
	began time.Time
}

// finalEvery is the polling interval for finality.
const finalEvery = 50 * time.Millisecond

// sample polls payments seen in a block until the service reports them final, and returns their
// times since they were queued for posting.
func (st *stand) sample(ctx context.Context, payments <-chan transfer) (all []time.Duration) {
	waiting := map[chain.Address]sampled{}
	tick := time.NewTicker(finalEvery)
	defer tick.Stop()
	for last := time.Now(); payments != nil || len(waiting) > 0 && time.Since(last) < unseenMost; {
		select {
		case t, ok := <-payments:
			if !ok {
				payments = nil
				continue
			}
			waiting[t.to], last = sampled{t, time.Now()}, time.Now()
			continue
		case <-tick.C:
		case <-ctx.Done():
			return all
		}
		for to, t := range waiting {
			if _, seen := st.seen.of(t.transfer); !seen || st.away.Load() {
				continue
			}
			if final, err := st.counter.final(ctx, st.urls[0], t.transfer); err == nil && final {
				all, last = append(all, time.Since(t.began)), time.Now()
				delete(waiting, to)
			}
		}
	}
	return all
}

// known are the payments that a client was told are accepted.
func (l *loaded) known() map[chain.Address]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[chain.Address]bool{}
	for _, w := range l.wishes {
		if w.err == nil {
			all[w.to] = true
		}
	}
	return all
}

// accepted lists these payments.
func (l *loaded) accepted() (all []transfer) {
	known := l.known()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wishes {
		if known[w.to] {
			all = append(all, w.transfer)
			delete(known, w.to)
		}
	}
	return all
}

// tell fills in the clients' results.
func (l *loaded) tell(s *shown, st *stand, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var accept, mined []time.Duration
	var answered, last time.Time
	accepted, first := 0, map[chain.Address]int{}
	for _, w := range l.wishes {
		if w.err != nil {
			s.Errors++
			if len(s.firstErrors) < 3 {
				s.firstErrors = append(s.firstErrors, w.err)
			}
			continue
		}
		accept = append(accept, w.took)
		if at := w.began.Add(w.took); at.After(answered) {
			answered = at
		}
		if first[w.to] += 0; !w.known {
			first[w.to]++
		}
	}
	for to, times := range first {
		accepted++
		// Exactly one of the requests was the first, unless its response was lost with the
		// service.
		if times > 1 || times == 0 && st.kill == 0 {
			s.Errors++
			s.firstErrors = append(s.firstErrors, fmt.Errorf("%s: %d clients were told that they were the first", to, times))
		}
	}
	for _, w := range l.wishes {
		if at, ok := st.seen.of(w.transfer); ok && w.err == nil {
			mined = append(mined, at.Sub(w.began))
			if at.After(last) {
				last = at
			}
		}
	}
	s.Accepted = float64(accepted) / answered.Sub(began).Seconds()
	s.Accept, s.ToMined = quantiles(accept, time.Millisecond), quantiles(mined, time.Second)
	if !last.IsZero() {
		s.Mined = float64(accepted) / last.Sub(began).Seconds()
	}
}

// quantiles are the median and the 99th percentile, in a unit.
func quantiles(all []time.Duration, unit time.Duration) [2]float64 {
	return [2]float64{float64(percentile(all, 0.50)) / float64(unit), float64(percentile(all, 0.99)) / float64(unit)}
}
