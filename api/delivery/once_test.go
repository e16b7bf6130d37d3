package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// remembering makes a stack remember requests in the embedded store, wrapped by between.
func remembering(t testing.TB, between func(rest.Requests) rest.Requests, change ...func(*Config)) *stack {
	t.Helper()
	s := newStack(t)
	config := s.config
	config.Idempotency = rest.Idempotency{Requests: between(s.db.Requests()), Keep: time.Hour, Hold: time.Minute}
	for _, c := range change {
		c(&config)
	}
	s.config, s.addr = config, serve(t, New(config), config.Limits)
	return s
}

func as(r rest.Requests) rest.Requests { return r }

func (s *stack) once(key string, body []byte, header ...string) response {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/transactions", body, append(header, "Idempotency-Key", key)...)
}

// Row 43: the same key and payload give the same answer; the same key with another payload is
// refused.
func TestIdempotencyKey(t *testing.T) {
	s := remembering(t, as)
	key := newKey(t)
	body := submissionOf(testChain, signed(t, key, testChain, 0))
	first := s.once("a-1", body)
	again := s.once(`"a-1"`, body)
	if first.status != 200 || first.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("the first time: %v", first)
	}
	// Executed again, it would say alreadyKnown.
	if again.status != 200 || !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the second time: %v, want %v", again, first)
	}
	events := len(s.recorded())
	other := submissionOf(testChain, signed(t, key, testChain, 1))
	wantProblem(t, "another body", s.once("a-1", other), 422, rest.ErrIdempotencyConflict)
	res := s.do(http.MethodPost, "/v1/transactions?validate=only", body, "Idempotency-Key", "a-1")
	wantProblem(t, "another query", res, 422, rest.ErrIdempotencyConflict)
	if n := len(s.recorded()); n != events {
		t.Errorf("%d events of what was refused", n-events)
	}
	if res := s.once("a-2", body); res.status != 200 || !strings.Contains(string(res.body), `"alreadyKnown":true`) {
		t.Errorf("another key: %v", res)
	}
	s.elapse(time.Hour)
	if res := s.once("a-1", other); res.status != 200 || res.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("after its time: %v", res)
	}
}

// Row 27: valid and invalid keys.
func TestIdempotencyKeyForm(t *testing.T) {
	s := remembering(t, as)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	for _, bad := range []string{"", `""`, `"a`, "a b", `"a"b`, "a\u200bb", "\u0661", strings.Repeat("a", 257), "ａ"} {
		wantProblem(t, fmt.Sprintf("%q", bad), s.once(bad, body), 400, rest.ErrInvalidIdempotencyKey)
	}
	twice := post(fmt.Sprintf("%sConnection: close\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\nContent-Length: %d\r\n", jsonType, len(body)), string(body))
	if answers, _ := s.raw(twice, patience); len(answers) != 1 || answers[0].status != 400 {
		t.Errorf("two keys: %v", answers)
	}
	if n := len(s.recorded()); n != 0 {
		t.Errorf("%d events", n)
	}
	for _, good := range []string{strings.Repeat("a", 256), "Az09._:-", "!#%&'()*+,/;<=>?@[]^`{|}~$", "a\"b\\", "A"} {
		if res := s.once(good, body); res.status != 200 || res.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%q: %v", good, res)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(good) + `"`
		if res := s.once(quoted, body); res.status != 200 || res.header.Get("Idempotency-Replayed") == "" {
			t.Errorf("%q: %v", quoted, res)
		}
	}
}

// A refused request is not remembered: once corrected, it can use the same key.
func TestRefusedRequestKeepsNoKey(t *testing.T) {
	s := remembering(t, as)
	wantProblem(t, "broken", s.once("k", []byte("{")), 400, rest.ErrMalformedJSON)
	if res := s.once("k", submissionOf(testChain, signed(t, newKey(t), testChain, 0))); res.status != 200 {
		t.Errorf("mended: %v", res)
	}
}

// Clients cannot use each other's keys.
func TestIdempotencyKeysAreApart(t *testing.T) {
	keys := newRing(t)
	s := remembering(t, as, keys.config)
	one, two := keys.Scoped(access.Submit), keys.Scoped(access.Submit)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	first := s.once("k", body, "X-API-Key", one)
	other := s.once("k", submissionOf(testChain, signed(t, newKey(t), testChain, 0)), "X-API-Key", two)
	again := s.once("k", body, "Authorization", "Bearer "+one)
	if first.status != 200 || other.status != 200 || other.header.Get("Idempotency-Replayed") != "" || !bytes.Equal(first.body, again.body) {
		t.Errorf("%v; %v; %v", first, other, again)
	}
}

// halting stops a request after its effect and before its answer is stored.
type halting struct {
	rest.Requests
	before, after chan struct{}
	dies          bool
}

func (h *halting) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	h.before <- struct{}{}
	<-h.after
	if h.dies {
		return errors.New("the process has died")
	}
	return h.Requests.Answer(ctx, name, claim, a)
}

// While the first request runs, repeats get a conflict; later repeats get its answer.
func TestSameKeyAtOnce(t *testing.T) {
	h := &halting{before: make(chan struct{}), after: make(chan struct{})}
	s := remembering(t, func(r rest.Requests) rest.Requests { h.Requests = r; return h })
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	ended := make(chan response)
	go func() {
		res, err := s.send(http.MethodPost, "/v1/transactions", body, "Idempotency-Key", "k")
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-h.before
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() {
			res, err := s.send(http.MethodPost, "/v1/transactions", body, "Idempotency-Key", "k")
			if err != nil || res.status != 409 || res.header.Get("Retry-After") == "" || !strings.Contains(string(res.body), string(rest.ErrIdempotencyRunning)) {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	others.Wait()
	close(h.after)
	first := <-ended
	if again := s.once("k", body); !bytes.Equal(first.body, again.body) {
		t.Errorf("%v, then %v", first, again)
	}
}

// If a process dies between the effect and storing the answer, repeats are blocked until the
// claim expires, and not for ever. Nothing is done twice.
func TestDeathBeforeTheAnswerIsKept(t *testing.T) {
	h := &halting{before: make(chan struct{}, 1), after: make(chan struct{}), dies: true}
	close(h.after)
	s := remembering(t, func(r rest.Requests) rest.Requests { h.Requests = r; return h })
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	if res := s.once("k", body); res.status != 200 {
		t.Fatal(res)
	}
	<-h.before
	wantProblem(t, "at once", s.once("k", body), 409, rest.ErrIdempotencyRunning)
	s.elapse(time.Minute)
	h.dies = false
	res := s.once("k", body)
	if res.status != 200 || !strings.Contains(string(res.body), `"alreadyKnown":true`) || len(s.recorded()) != 1 {
		t.Errorf("afterwards: %v, %d events", res, len(s.recorded()))
	}
	<-h.before
	if again := s.once("k", body); !bytes.Equal(res.body, again.body) {
		t.Errorf("%v, then %v", res, again)
	}
}

// An answer with internal failures is not stored, nor one over the size limit. The request is
// executed again.
func TestAnswersThatAreNotKept(t *testing.T) {
	h := &halting{before: make(chan struct{}, 1), after: make(chan struct{})}
	close(h.after)
	failing := true
	s := remembering(t, func(r rest.Requests) rest.Requests { h.Requests = r; return h }, func(c *Config) {
		submit := *c.Submit
		submit.Allow = func(chain.Signed) error {
			if failing {
				return eventlog.ErrClosed
			}
			return nil
		}
		c.Submit = &submit
	})
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	wantProblem(t, "store away", s.once("k", body), 503, unavailable)
	failing = false
	another := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	wantProblem(t, "another request under the key", s.once("k", another), 422, rest.ErrIdempotencyConflict)
	if res := s.once("k", body); res.status != 200 || res.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("store back: %v", res)
	}
	<-h.before
	long := make([][]byte, 300)
	key := newKey(t)
	for i := range long {
		long[i] = signed(t, key, testChain, uint64(i))
	}
	for range 2 {
		if res := s.once("long", submissionOf(testChain, long...)); res.status != 200 || len(res.body) <= answerMax || res.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%d with %d bytes", res.status, len(res.body))
		}
	}
}

// A request that was accepted and waited in vain keeps its key. No other request can use the
// key, and the same request can be repeated at once.
func TestWaitInVainKeepsItsKey(t *testing.T) {
	s := remembering(t, as)
	ask := func(body []byte) response {
		return s.do(http.MethodPost, "/v1/transactions?wait=final&timeout=10ms", body, "Idempotency-Key", "k")
	}
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	for range 2 {
		if res := ask(body); res.status != http.StatusAccepted || res.header.Get("Idempotency-Replayed") != "" || len(s.recorded()) != 1 {
			t.Errorf("%v, %d events", res, len(s.recorded()))
		}
		wantProblem(t, "another request under the key", ask(submissionOf(testChain, signed(t, newKey(t), testChain, 0))), 422, rest.ErrIdempotencyConflict)
	}
}

// A request that panics loses its claim: it can be repeated at once.
func TestPanicKeepsNoClaim(t *testing.T) {
	panics := true
	s := remembering(t, as, func(c *Config) {
		c.Submitted = func(string) {
			if panics {
				panic("a broken invariant")
			}
		}
	})
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	wantProblem(t, "panicked", s.once("k", body), 500, internal)
	panics = false
	if res := s.once("k", body); res.status != 200 || res.header.Get("Idempotency-Replayed") != "" || len(s.recorded()) != 1 {
		t.Errorf("then: %v, %d events", res, len(s.recorded()))
	}
}

// claims records every claim.
type claims struct {
	rest.Requests
	all []request.Claim
}

func (c *claims) Claim(ctx context.Context, claim request.Claim) (request.Stage, request.Answer, error) {
	c.all = append(c.all, claim)
	return c.Requests.Claim(ctx, claim)
}

// A request that waits before answering holds its claim for that much longer. Otherwise a
// repeat would run at the same time.
func TestClaimsOutlastWaits(t *testing.T) {
	noted := &claims{}
	s := remembering(t, func(r rest.Requests) rest.Requests { noted.Requests = r; return noted })
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	s.once("a", body)
	s.do(http.MethodPost, "/v1/transactions?wait=accepted&timeout=55", body, "Idempotency-Key", "b")
	if len(noted.all) != 2 || noted.all[0].Hold != time.Minute || noted.all[1].Hold < time.Minute+55*time.Second {
		t.Errorf("claimed %+v", noted.all)
	}
}
