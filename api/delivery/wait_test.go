package delivery

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// mined records a receipt for a transaction; sealed records that its block is final.
func (s *stack) mined(hash chain.Hash) {
	s.t.Helper()
	s.handle(hash, tx.SeeReceipt{At: testTime, Receipt: chain.Receipt{
		Block: chain.Block{Number: 7, Hash: chain.Hash{7}, Time: uint64(testTime.Unix())}, Status: 1, GasUsed: 21_000,
	}})
}

func (s *stack) sealed(hash chain.Hash) {
	s.t.Helper()
	s.handle(hash, tx.Finalize{Final: chain.Block{Number: 9, Hash: chain.Hash{9}}, At: testTime})
}

func (s *stack) broadcast(hash chain.Hash) {
	s.t.Helper()
	s.handle(hash, tx.Report{Attempt: 1, At: testTime, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}})
}

// asked sends a request in another goroutine.
// unanswered is an attempt whose answer was lost.
func (s *stack) unanswered(hash chain.Hash) {
	s.t.Helper()
	s.handle(hash, tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Unknown, Cause: tx.Unreachable}}, At: testTime})
}

func (s *stack) asked(method, target string, body []byte, header ...string) <-chan response {
	answers := make(chan response, 1)
	go func() {
		res, err := s.send(method, target, body, header...)
		if err != nil {
			s.t.Error(err)
		}
		answers <- res
	}()
	return answers
}

func (s *stack) waitedOf(res response) (shown object) {
	s.t.Helper()
	checkAnswer(s.t, http.MethodGet, "/v1/transactions/{hash}", res)
	unmarshal(s.t, res.body, &shown)
	return shown
}

// A waiting request is answered when the milestone is reached, with the state at that time,
// whether or not the read model has it.
func TestWait(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	target := "/v1/transactions/" + hash.String() + "?timeout=30s&wait="
	nothing := func(chain.Hash) {}
	for _, step := range []struct {
		milestone, status string
		reach             func(chain.Hash)
	}{
		{"accepted", "queued", nothing},
		{"broadcast", "retry_scheduled", s.unanswered},
		{"submitted", "broadcasting", func(hash chain.Hash) {
			s.handle(hash, tx.Report{Attempt: 2, At: testTime, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Known}}})
		}},
		{"executed", "executed", s.mined},
		{"mined", "executed", nothing},
		{"submitted", "executed", nothing},
		{"final", "executed", s.sealed},
		{"completed", "executed", nothing},
	} {
		answers := s.asked(http.MethodGet, target+step.milestone, nil)
		step.reach(hash)
		res := <-answers
		wantMembers(t, s.waitedOf(res), map[string]string{
			"status": `"` + step.status + `"`, "waited": `{"for":"` + step.milestone + `","reached":true}`,
		})
	}
}

// A lost answer is no submission: the node may not have the bytes. A transaction whose end is final
// without it is not completed.
func TestWaitIsSure(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	at := "/v1/transactions/" + hash.String()
	s.unanswered(hash)
	for milestone, want := range map[string]string{
		"broadcast": `{"for":"broadcast","reached":true}`, "submitted": `{"because":"timeout","for":"submitted","reached":false}`,
	} {
		wantMembers(t, s.waitedOf(s.get(at+"?timeout=0&wait="+milestone)), map[string]string{"waited": want})
	}
	stale := chain.Block{Number: 9, Hash: chain.Hash{9}, Time: uint64(testTime.Unix())}
	s.handle(hash, tx.SeeNonce{Current: 1, Block: stale, At: testTime})
	wantMembers(t, s.waitedOf(s.get(at+"?timeout=0&wait=completed")), map[string]string{
		"status": `"stale_by_nonce"`, "waited": `{"because":"timeout","for":"completed","reached":false}`,
	})
	s.handle(hash, tx.Finalize{Final: stale, At: testTime})
	for milestone, want := range map[string]string{
		"final": `{"for":"final","reached":true}`, "completed": `{"because":"ended","for":"completed","reached":false}`,
		"submitted": `{"because":"ended","for":"submitted","reached":false}`, "mined": `{"because":"ended","for":"mined","reached":false}`,
	} {
		wantMembers(t, s.waitedOf(s.get(at+"?wait="+milestone)), map[string]string{"status": `"stale_by_nonce"`, "waited": want})
	}
}

// A wait ends when its milestone can no longer be reached.
func TestWaitHopeless(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	answers := s.asked(http.MethodGet, "/v1/transactions/"+hash.String()+"?timeout=30&wait=executed", nil)
	s.handle(hash, tx.Cancel{Reason: "test", At: testTime})
	wantMembers(t, s.waitedOf(<-answers), map[string]string{
		"status": `"canceled_locally"`, "waited": `{"because":"ended","for":"executed","reached":false}`,
	})
}

// A timeout is no error: the answer is the present state, marked as timed out.
func TestWaitTimeout(t *testing.T) {
	s := newStack(t)
	raw := signed(t, newKey(t), testChain, 0)
	res := s.do(http.MethodPost, "/v1/transactions?wait=executed&timeout=10ms", submissionOf(testChain, raw))
	var out struct{ Results []object }
	unmarshal(t, res.body, &out)
	if res.status != http.StatusAccepted {
		t.Errorf("POST answered %v", res)
	}
	want := map[string]string{"ok": "true", "status": `"queued"`, "waited": `{"because":"timeout","for":"executed","reached":false}`}
	wantMembers(t, out.Results[0], want)

	delete(want, "ok")
	hash := out.Results[0]["txHash"].(string)
	res = s.get("/v1/transactions/" + hash + "?wait=executed&timeout=0")
	if res.status != http.StatusOK {
		t.Errorf("GET answered %v", res)
	}
	wantMembers(t, s.waitedOf(res), want)
	res = s.get("/v1/transactions/" + hash + "?wait=accepted&timeout=0")
	wantMembers(t, s.waitedOf(res), map[string]string{"waited": `{"for":"accepted","reached":true}`})
}

// One submission waits for all its transactions; refused items are not waited for.
func TestSubmitAndWait(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	raws := [][]byte{signed(t, key, testChain, 0), []byte("nonsense"), signed(t, key, testChain, 1)}
	answers := s.asked(http.MethodPost, "/v1/transactions?wait=executed&timeout=30", submissionOf(testChain, raws...))
	hashes := []chain.Hash{chain.Keccak(raws[0]), chain.Keccak(raws[2])}
	for _, hash := range hashes {
		s.until("/v1/transactions/" + hash.String())
	}
	s.mined(hashes[1])
	s.handle(hashes[0], tx.Cancel{Reason: "test", At: testTime})
	res := <-answers
	checkAnswer(t, http.MethodPost, "/v1/transactions", res)
	if res.status != http.StatusOK {
		t.Errorf("answered %v", res)
	}
	var out struct{ Results []object }
	unmarshal(t, res.body, &out)
	wantMembers(t, out.Results[0], map[string]string{"waited": `{"because":"ended","for":"executed","reached":false}`, "receipt": "null"})
	wantMembers(t, out.Results[1], map[string]string{"ok": "false", "waited": "null"})
	wantMembers(t, out.Results[2], map[string]string{"waited": `{"for":"executed","reached":true}`, "status": `"executed"`})
	if out.Results[2]["receipt"] == nil || out.Results[2]["block"] == nil {
		t.Errorf("no receipt: %v", out.Results[2])
	}
}

// until repeats a GET until it succeeds.
func (s *stack) until(target string) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		res, err := s.send(http.MethodGet, target, nil)
		if err == nil && res.status == http.StatusOK {
			return
		}
		select {
		case <-deadline:
			s.t.Fatalf("%s: %v, %v", target, res, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A wait may last longer than ReadTimeout and WriteTimeout.
func TestWaitOutlivesDeadlines(t *testing.T) {
	const short = 300 * time.Millisecond
	s := newStack(t, func(c *Config) { c.Limits.ReadTimeout, c.Limits.WriteTimeout = short, short })
	raw := signed(t, newKey(t), testChain, 0)
	res := s.do(http.MethodPost, "/v1/transactions?wait=executed&timeout=900ms", submissionOf(testChain, raw))
	if res.status != http.StatusAccepted {
		t.Errorf("POST answered %v", res)
	}
	answers := s.asked(http.MethodGet, "/v1/transactions/"+chain.Keccak(raw).String()+"?wait=executed&timeout=30", nil)
	passed := time.After(3 * short)
	<-passed
	s.mined(chain.Keccak(raw))
	wantMembers(t, s.waitedOf(<-answers), map[string]string{"waited": `{"for":"executed","reached":true}`})
}

// One transaction takes up the whole wait, which is longer than the time for work. The others are
// looked at all the same.
func TestLastLookAfterALongWait(t *testing.T) {
	const short = 300 * time.Millisecond
	s := newStack(t, func(c *Config) { c.Limits.WriteTimeout, c.Now = short, time.Now })
	key := newKey(t)
	raws := [][]byte{signed(t, key, testChain, 0), signed(t, key, testChain, 1)}
	answers := s.asked(http.MethodPost, "/v1/transactions?wait=executed&timeout=1500ms", submissionOf(testChain, raws...))
	mined := chain.Keccak(raws[1])
	s.until("/v1/transactions/" + mined.String())
	s.mined(mined)
	var out struct{ Results []object }
	unmarshal(t, (<-answers).body, &out)
	wantMembers(t, out.Results[0], map[string]string{"waited": `{"because":"timeout","for":"executed","reached":false}`})
	wantMembers(t, out.Results[1], map[string]string{"waited": `{"for":"executed","reached":true}`})
}

// A process that is about to stop answers its waiting clients with the present state.
func TestWaitLeaving(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	answers := s.asked(http.MethodGet, "/v1/transactions/"+hash.String()+"?wait=executed&timeout=30", nil)
	s.config.Tail.Leave()
	wantMembers(t, s.waitedOf(<-answers), map[string]string{
		"status": `"queued"`, "waited": `{"because":"stopping","for":"executed","reached":false}`,
	})
}

func TestWaitRefused(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	for _, q := range []string{
		"wait=assigned", "wait=Mined", "wait=", "wait=executed&wait=final", "timeout=5", "wait=executed&timeout=", "wait=executed&timeout=-1",
		"wait=executed&timeout=-1s", "wait=executed&timeout=56", "wait=executed&timeout=1h", "wait=executed&timeout=%2B1s",
		"wait=executed&timeout=1,5s", "wait=executed&timeout=99999999999999999999", "wait=executed&for=5",
	} {
		wantProblem(t, q, s.get("/v1/transactions/"+hash.String()+"?"+q), http.StatusBadRequest, rest.ErrInvalidFilter)
		res := s.do(http.MethodPost, "/v1/transactions?"+q, submissionOf(testChain, signed(t, newKey(t), testChain, 0)))
		wantProblem(t, q, res, http.StatusBadRequest, rest.ErrInvalidFilter)
	}
	if n := len(s.recorded()); n != 1 {
		t.Errorf("%d events: a refused submission had an effect", n)
	}
	// An unknown transaction is not waited for.
	unknown := "/v1/transactions/0x" + strings.Repeat("00", 32) + "?wait=executed&timeout=30"
	wantProblem(t, "unknown", s.get(unknown), http.StatusNotFound, eventlog.Refusal(tx.ErrUnknown))
}
