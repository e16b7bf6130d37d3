package web3signer_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/web3signer"
)

// Time is the test's own below, so waits of seconds take no time.

// moody returns these errors in turn, and signs from then on. It records the times of its
// calls.
type moody struct {
	mu     sync.Mutex
	errs   []error
	begun  time.Time
	asked  []time.Duration
	atOnce int
	most   int
	takes  time.Duration
}

func (m *moody) sign(signs asked) asked {
	m.begun = time.Now()
	return func(ctx context.Context, digest chain.Hash) ([]byte, error) {
		m.mu.Lock()
		m.asked = append(m.asked, time.Since(m.begun))
		m.atOnce++
		m.most = max(m.most, m.atOnce)
		var err error
		if len(m.errs) > 0 {
			err, m.errs = m.errs[0], m.errs[1:]
		}
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.atOnce--
		}()
		if m.takes > 0 {
			select {
			case <-time.After(m.takes):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, err
		}
		return signs(ctx, digest)
	}
}

// TestPatience checks when a service is asked again, and the client's answer.
func TestPatience(t *testing.T) {
	broken := errors.New("the connection broke")
	throttled := &keys.Busy{Status: 429}
	later := &keys.Busy{Status: 429, After: 3 * time.Second}
	muchLater := &keys.Busy{Status: 503, After: 20 * time.Second}
	const ms = time.Millisecond
	for _, c := range []struct {
		what    string
		errs    []error
		takes   time.Duration
		timeout time.Duration
		asked   []time.Duration
		status  int
		after   string
	}{
		{what: "signs", asked: []time.Duration{0}, status: 200},
		{what: "broke", errs: []error{broken}, asked: []time.Duration{0, 100 * ms}, status: 200},
		{what: "throttled thrice", errs: []error{throttled, throttled, throttled}, asked: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, status: 200},
		{what: "throttled for good", errs: []error{throttled, throttled, throttled, throttled}, asked: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, status: 429, after: "1"},
		{what: "broken for good", errs: []error{broken, broken, broken, broken}, asked: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, status: 502},
		{what: "asks for a pause", errs: []error{later}, asked: []time.Duration{0, 3 * time.Second}, status: 200},
		{what: "asks for too long a pause", errs: []error{muchLater}, timeout: 10 * time.Second, asked: []time.Duration{0}, status: 429, after: "20"},
		{what: "refuses", errs: []error{keys.ErrRejected.Because("no")}, asked: []time.Duration{0}, status: 502},
		{what: "hangs", takes: time.Hour, timeout: 10 * time.Second, asked: []time.Duration{0, 5100 * ms}, status: 504},
		{what: "is slow", takes: 4 * time.Second, timeout: 10 * time.Second, asked: []time.Duration{0}, status: 200},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := held(chain.P256)
				m := &moody{errs: c.errs, takes: c.takes}
				h := handler(t, web3signer.Settings{Timeout: c.timeout}, signer(t, k, m.sign(willing(k))))
				w := ask(t, h, "POST", nameOf(k), something, nil)
				if w.Code != c.status || w.Header().Get("Retry-After") != c.after {
					t.Errorf("%d, after %q, want %d, after %q", w.Code, w.Header().Get("Retry-After"), c.status, c.after)
				}
				if !slices.Equal(m.asked, c.asked) {
					t.Errorf("asked at %v, want %v", m.asked, c.asked)
				}
			})
		})
	}
}

// A pause that the service asks for applies to all requests.
func TestPauseIsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := held(chain.P256)
		m := &moody{errs: []error{&keys.Busy{Status: 429, After: 3 * time.Second}}}
		h := handler(t, web3signer.Settings{}, signer(t, k, m.sign(willing(k))))
		var all sync.WaitGroup
		all.Go(func() { ask(t, h, "POST", nameOf(k), something, nil) })
		synctest.Wait() // it has the pause
		for range 3 {
			all.Go(func() {
				if w := ask(t, h, "POST", nameOf(k), something, nil); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		if s := 3 * time.Second; !slices.Equal(m.asked, []time.Duration{0, s, s, s, s}) {
			t.Errorf("asked at %v", m.asked)
		}
	})
}

// At most AtOnce requests run, a few wait, and the rest is refused.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := held(chain.P256)
		m := &moody{takes: time.Second}
		h := handler(t, web3signer.Settings{AtOnce: 2}, signer(t, k, m.sign(willing(k))))
		statuses := map[int]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				w := ask(t, h, "POST", nameOf(k), something, nil)
				mu.Lock()
				defer mu.Unlock()
				statuses[w.Code]++
			})
		}
		all.Wait()
		if m.most != 2 || statuses[200] != 10 || statuses[429] != 20 {
			t.Errorf("%d at once, and statuses %v, want 2 at once, 10 signatures and 20 sent away", m.most, statuses)
		}
	})
}

// A client that has gone gets no answer, and the request to the service is cancelled.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := held(chain.P256)
		m := &moody{takes: time.Hour}
		h := handler(t, web3signer.Settings{Timeout: time.Hour}, signer(t, k, m.sign(willing(k))))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			w := ask(t, h, "POST", nameOf(k), something, func(r *http.Request) { *r = *r.WithContext(ctx) })
			if w.Body.Len() > 0 {
				t.Errorf("answered by %d %s", w.Code, w.Body)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		if len(m.asked) != 1 {
			t.Errorf("asked at %v", m.asked)
		}
	})
}

// Health is checked at most once per HealthFor, however many callers ask.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times int
		var trouble error
		h := handler(t, web3signer.Settings{Check: func(context.Context) error {
			times++
			return trouble
		}})
		look := func() string {
			w := ask(t, h, "GET", "/healthcheck", "", nil)
			return http.StatusText(w.Code) + " " + w.Body.String()
		}
		const up, down = `OK {"status":"UP"}`, `Service Unavailable {"status":"DOWN"}`
		for _, step := range []struct {
			trouble error
			want    string
			times   int
			pause   time.Duration
		}{
			{nil, up, 1, web3signer.HealthFor - 1},
			{errors.New("away"), up, 1, 1},
			{errors.New("away"), down, 2, 1},
			{nil, down, 2, web3signer.HealthFor},
			{nil, up, 3, 0},
		} {
			trouble = step.trouble
			if got := look(); got != step.want || times != step.times {
				t.Errorf("%s, asked %d times, want %s, %d times", got, times, step.want, step.times)
			}
			<-time.After(step.pause)
		}
	})
}
