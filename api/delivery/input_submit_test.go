package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Rows 39 to 50: well-formed requests for something impossible, or repeated requests. Rows 47
// and 48 are in cancelInputs.
func submitInputs(t *testing.T) []input {
	raw := signed(t, newKey(t), testChain, 0)
	text := fmt.Sprintf("0x%x", raw)
	on := func(id string) string { return posted(fmt.Sprintf(`{"chainId":%s,"transactions":[%q]}`, id, text)) }
	batch := func(n int) string { // of items that are no transactions
		return posted(`{"chainId":42431,"transactions":["0x"` + strings.Repeat(`,"0x"`, n-1) + `]}`)
	}
	most := rest.DefaultLimits().BatchItems
	list := []input{
		{row: 39, what: "no transactions", request: posted(`{"chainId":42431,"transactions":[]}`), answer: refuses(400, rest.ErrEmptyBatch)},
		{row: 40, what: "as many as may be", request: batch(most), answer: answers(200)},
		{row: 40, what: "one more", request: batch(most + 1), answer: refuses(413, rest.ErrBatchTooLarge)},
		{row: 40, what: "as many as fit", request: batch(200_000), answer: refuses(413, rest.ErrBatchTooLarge)},
		{row: 40, what: "one of 128 KiB and a byte", request: single(bytes.Repeat([]byte{2}, 128<<10+1)), answer: inItsPlace(413, txTooLarge, "tx-too-large")},
		{row: 41, what: "one twice", does: twiceInABatch},
		{row: 42, what: "one a hundred times at once", does: hundredAtOnce},
		{row: 43, what: "one key for two requests", does: oneKeyForTwo},
		{row: 43, what: "one key at once", does: oneKeyAtOnce},
		{row: 44, what: "a bad one among ten", does: badAmongTen},
		{row: 45, what: "signed for another chain", request: single(signed(t, newKey(t), 1, 0)), answer: inItsPlace(422, wrongChain, "wrong-chain")},
		{row: 45, what: "signed for no chain of ours", request: single(signed(t, newKey(t), 5, 0)), answer: inItsPlace(422, wrongChain, "wrong-chain")},
		{row: 45, what: "ours, in another chain's batch", request: on("1"), answer: inItsPlace(422, wrongChain, "wrong-chain")},
		{row: 46, what: "chain 5", request: on("5"), answer: refuses(422, commands.ErrUnsupportedChain)},
		{row: 46, what: "chain 0", request: on("0"), answer: refuses(422, commands.ErrUnsupportedChain)},
		{row: 46, what: "chain 2^64-1", request: on("18446744073709551615"), answer: refuses(422, commands.ErrUnsupportedChain)},
		{row: 46, what: "no transaction for chain 5", request: posted(`{"chainId":5,"transactions":["zz"]}`), answer: refuses(422, commands.ErrUnsupportedChain)},
		{row: 49, what: "the store is down", does: storeDown},
		{row: 50, what: "over the rate", does: overTheRate},
	}
	return append(list, cancelInputs()...)
}

// single is a whole request that submits one transaction.
func single(raw []byte) string { return posted(string(submissionOf(testChain, raw))) }

// Row 41: one record; the second item's result says that it is known.
func twiceInABatch(t *testing.T, s *stack) int {
	raw := signed(t, newKey(t), testChain, 0)
	got := s.submit(raw, raw)
	if first, second := got[0], got[1]; !first.OK || first.AlreadyKnown || !second.OK || !second.AlreadyKnown || first.TxHash != second.TxHash {
		t.Errorf("answered %+v", got)
	}
	return 1
}

// Row 42: one request is the first, the others get alreadyKnown.
func hundredAtOnce(t *testing.T, s *stack) int {
	raw := signed(t, newKey(t), testChain, 0)
	body := submissionOf(testChain, raw)
	results := make([]result, 100)
	var posting sync.WaitGroup
	for i := range results {
		posting.Go(func() {
			res, err := s.send(http.MethodPost, "/v1/transactions", body)
			var out struct{ Results []result }
			if err != nil || res.status != http.StatusOK || json.Unmarshal(res.body, &out) != nil || len(out.Results) != 1 {
				t.Errorf("answered %v, %v", res, err)
				return
			}
			results[i] = out.Results[0]
		})
	}
	posting.Wait()
	first := 0
	for i, r := range results {
		if !r.OK || r.TxHash != chain.Keccak(raw) || r.Status != "queued" {
			t.Errorf("result %d: %+v", i, r)
		}
		if !r.AlreadyKnown {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d were the first", first)
	}
	return 1
}

// Row 43: a repeat gets the first answer; another request with the key has no effect.
func oneKeyForTwo(t *testing.T, _ *stack) int {
	s := remembering(t, as)
	key := newKey(t)
	body, other := submissionOf(testChain, signed(t, key, testChain, 0)), submissionOf(testChain, signed(t, key, testChain, 1))
	first := s.once("k", body)
	before := s.events(t)
	for range 3 {
		again := s.once("k", body)
		if again.status != http.StatusOK || !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %v, then %v", first, again)
		}
		wantProblem(t, "another body", s.once("k", other), 422, rest.ErrIdempotencyConflict)
		wantProblem(t, "a space more", s.once("k", append(slices.Clone(body), ' ')), 422, rest.ErrIdempotencyConflict)
	}
	if got := s.events(t); got != before {
		t.Errorf("%d events more", got-before)
	}
	s.serves(t, patience)
	return 0
}

// Row 43: while the first request runs, a repeat is told to retry, and another request with the
// key conflicts. Other clients need not wait.
func oneKeyAtOnce(t *testing.T, _ *stack) int {
	h := &halting{before: make(chan struct{}), after: make(chan struct{})}
	s := remembering(t, func(r rest.Requests) rest.Requests { h.Requests = r; return h })
	key := newKey(t)
	body, other := submissionOf(testChain, signed(t, key, testChain, 0)), submissionOf(testChain, signed(t, key, testChain, 1))
	ended := s.asked(http.MethodPost, "/v1/transactions", body, "Idempotency-Key", "k")
	<-h.before
	res := s.once("k", body)
	if wantProblem(t, "the same", res, 409, rest.ErrIdempotencyRunning); res.header.Get("Retry-After") == "" {
		t.Error("nobody says when to come back")
	}
	wantProblem(t, "another", s.once("k", other), 422, rest.ErrIdempotencyConflict)
	s.serves(t, patience)
	close(h.after)
	first := <-ended
	if again := s.once("k", body); !bytes.Equal(first.body, again.body) {
		t.Errorf("first %v, then %v", first, again)
	}
	return 0
}

// Row 44: each item is answered in its place.
func badAmongTen(t *testing.T, s *stack) int {
	key := newKey(t)
	for bad := range 10 {
		raws := make([][]byte, 10)
		for i := range raws {
			raws[i] = signed(t, key, testChain, uint64(10*bad+i))
		}
		raws[bad] = raws[bad][:len(raws[bad])-1]
		for i, r := range s.submit(raws...) {
			if i == bad && (r.OK || r.Problem.Code != string(invalidTransaction)) || i != bad && (!r.OK || r.TxHash != chain.Keccak(raws[i])) {
				t.Errorf("the bad one is %d; result %d: %+v", bad, i, r)
			}
		}
	}
	return 90
}

// Row 49: nothing is half done, and a retry is safe.
func storeDown(t *testing.T, _ *stack) int {
	down := true
	s := newStack(t, func(c *Config) {
		c.Submit.Transactions.Store = failing{c.Submit.Transactions.Store, func(eventlog.Stream) error {
			if down {
				return eventlog.ErrClosed
			}
			return nil
		}, false}
	})
	key := newKey(t)
	raws := [][]byte{signed(t, key, testChain, 0), signed(t, key, testChain, 1)}
	for range 3 {
		res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...))
		p := wantProblem(t, "down", res, http.StatusServiceUnavailable, unavailable)
		if n := s.events(t); !p.Retryable || res.header.Get("Retry-After") == "" || n != 0 {
			t.Errorf("%v with %d events", res, n)
		}
	}
	if res := s.get("/livez"); res.status != http.StatusOK {
		t.Errorf("/livez: %v", res)
	}
	down = false
	for i, r := range s.submit(raws...) {
		if !r.OK || r.AlreadyKnown {
			t.Errorf("repeated: result %d: %+v", i, r)
		}
	}
	return 0
}

// Row 50: a client over its rate has no effect, and all other clients are served.
func overTheRate(t *testing.T, _ *stack) int {
	s := newStack(t, func(c *Config) {
		c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 3}
		c.Rates.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	from := func(client string, nonce uint64) response {
		raw := signed(t, newKey(t), testChain, nonce)
		return s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "X-Forwarded-For", client)
	}
	for range 3 {
		from("203.0.113.1", 0)
	}
	before := s.events(t)
	for range 20 {
		res := from("203.0.113.1", 0)
		wantProblem(t, "over the rate", res, http.StatusTooManyRequests, rest.ErrRateLimited)
		if res.header.Get("Retry-After") != "1" || res.header.Get("RateLimit") != `"address";r=0;t=1` || res.header.Get("RateLimit-Policy") == "" {
			t.Errorf("headers %v", res.header)
		}
	}
	if got := s.events(t); before != 3 || got != before {
		t.Errorf("%d events, then %d", before, got)
	}
	if res := from("203.0.113.2", 0); res.status != http.StatusOK {
		t.Errorf("another client: %v", res)
	}
	s.elapse(time.Second)
	if res := from("203.0.113.1", 0); res.status != http.StatusOK {
		t.Errorf("after the wait: %v", res)
	}
	return 0
}
