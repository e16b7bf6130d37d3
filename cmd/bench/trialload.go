package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// wish is one client's wish that a payment be taken on.
type wish struct {
	transfer
	began time.Time // when it was first asked for
	took  time.Duration
	known bool  // the service knew the payment already
	err   error // of a client who did nothing wrong
}

// loaded is what came of all wishes.
type loaded struct {
	mu     sync.Mutex
	wishes []wish
	finals []time.Duration // of a sample: from the wish until it was called final
}

// samples are how many payments are asked about until they are final.
const samples = 25

// load posts all payments as the trial says, and begins to ask about a sample.
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
			if err := st.killAndBack(ctx); err != nil {
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
	sampled := make(chan transfer, len(st.all))
	var sampling sync.WaitGroup
	sampling.Go(func() { l.finals = st.sample(ctx, sampled) })
	next := time.Now()
	for i, t := range st.all {
		if i%max(len(st.all)/samples, 1) == 0 {
			sampled <- t
		}
		for range 1 + st.twice(i) {
			work <- wish{transfer: t, began: time.Now()}
		}
		if next = next.Add(pause); pause > 0 {
			<-time.After(time.Until(next))
		}
	}
	close(sampled)
	close(work)
	clients.Wait()
	faults.Wait()
	sampling.Wait()
	return l
}

// twice is 1 for a payment that is asked for twice at once.
func (st *stand) twice(i int) int {
	if st.doubled && i%2 == 1 {
		return 1
	}
	return 0
}

// insist asks until there is an answer. While the service is away, no answer is what is
// to be expected.
func (st *stand) insist(ctx context.Context, w *wish) {
	body := fmt.Appendf(nil, `{"chainId":%d,"transactions":["0x%s"]}`, plainChain, hex.EncodeToString(w.Raw))
	url := st.urls[int(w.Hash[31])%len(st.urls)]
	for {
		away := st.away.Load()
		answer, err := st.post(ctx, url, body)
		if err == nil {
			w.took, w.known = time.Since(w.began), bytes.Contains(answer, []byte(`"alreadyKnown":true`))
			if !bytes.Contains(answer, []byte(`"ok":true`)) {
				w.err = fmt.Errorf("answered %.300s", answer)
			}
			return
		}
		if !away && !st.away.Load() || ctx.Err() != nil {
			w.err = err
			return
		}
		<-time.After(sightEvery)
	}
}

// post sends a submission. An answer other than 200 is an error.
func (st *stand) post(ctx context.Context, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/transactions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := st.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", res.Status, answer)
	}
	return answer, err
}

// finalEvery is how exactly it is known when the service calls a payment final.
const finalEvery = 50 * time.Millisecond

// sample asks about payments, once they are seen in a block, until the service calls them
// final, and says how long that took since they were handed over for posting.
func (st *stand) sample(ctx context.Context, payments <-chan transfer) (all []time.Duration) {
	began := map[chain.Hash]time.Time{}
	tick := time.NewTicker(finalEvery)
	defer tick.Stop()
	for last := time.Now(); payments != nil || len(began) > 0 && time.Since(last) < unseenMost; {
		select {
		case t, ok := <-payments:
			if !ok {
				payments = nil
				continue
			}
			began[t.Hash], last = time.Now(), time.Now()
			continue
		case <-tick.C:
		case <-ctx.Done():
			return all
		}
		for hash, at := range began {
			if _, seen := st.seen.of(hash); !seen || st.away.Load() {
				continue
			}
			if t, err := rig.Get(ctx, st.urls[0], hash); err == nil && rig.Sealed(t) {
				all, last = append(all, time.Since(at)), time.Now()
				delete(began, hash)
			}
		}
	}
	return all
}

// known are the payments that a client was told to be accepted.
func (l *loaded) known() map[chain.Hash]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[chain.Hash]bool{}
	for _, w := range l.wishes {
		if w.err == nil {
			all[w.Hash] = true
		}
	}
	return all
}

// accepted are these payments.
func (l *loaded) accepted() (all []transfer) {
	known := l.known()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wishes {
		if known[w.Hash] {
			all = append(all, w.transfer)
			delete(known, w.Hash)
		}
	}
	return all
}

// tell fills in what the clients saw.
func (l *loaded) tell(s *shown, st *stand, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var accept, mined []time.Duration
	var answered, last time.Time
	accepted, first := 0, map[chain.Hash]int{}
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
		if first[w.Hash] += 0; !w.known {
			first[w.Hash]++
		}
	}
	for hash, times := range first {
		accepted++
		// Exactly one of those who asked for it was the first; unless that one's answer
		// was lost with the service.
		if times > 1 || times == 0 && st.kill == 0 {
			s.Errors++
			s.firstErrors = append(s.firstErrors, fmt.Errorf("%s: %d clients were told that they were the first", hash, times))
		}
	}
	for _, w := range l.wishes {
		if at, ok := st.seen.of(w.Hash); ok && w.err == nil {
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
