package api

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// An input is something that no client should send, or that none should gain by. It
// bears the number of its row among the inputs in docs/reliability.md.
type input struct {
	row  int
	what string
	// request is sent as it stands, on a connection of its own, and answer judges what
	// came back.
	request string
	answer  judge
	// does is for what takes more than one request. It returns how many events it has
	// rightly caused; a request, answered as is right, causes as many as events says.
	does   func(t *testing.T, s *stack) int
	events int
}

// A judge says what is wrong with the answers on a connection, which was closed by
// the server or stayed open.
type judge func(t *testing.T, answers []response, closed bool)

// inputRows is how many rows there are.
const inputRows = 67

// families are the tables of all inputs.
func families(t *testing.T) map[string][]input {
	return map[string][]input{
		"envelope": envelopeInputs(t), "path": pathInputs(t), "JSON": jsonInputs(t), "submit": submitInputs(t), "raw": rawInputs(t),
	}
}

// Every input gets the answer that is stated, leaves no event but those that it
// should, and others are served.
func TestEnvelopeInputs(t *testing.T) { newStack(t, quick).suffersAll(t, envelopeInputs(t)) }
func TestPathInputs(t *testing.T)     { newStack(t).suffersAll(t, pathInputs(t)) }
func TestJSONInputs(t *testing.T)     { newStack(t).suffersAll(t, jsonInputs(t)) }
func TestSubmitInputs(t *testing.T)   { newStack(t).suffersAll(t, submitInputs(t)) }
func TestRawInputs(t *testing.T)      { newStack(t).suffersAll(t, rawInputs(t)) }

// No row is left out, and none is in two families.
func TestEveryInputRowIsTried(t *testing.T) {
	tried := map[int]string{}
	for name, list := range families(t) {
		for _, in := range list {
			if in.row < 1 || in.row > inputRows || in.what == "" || (in.does == nil) == (in.answer == nil) {
				t.Errorf("%s: the input %d %q is not whole", name, in.row, in.what)
			}
			if other, known := tried[in.row]; known && other != name {
				t.Errorf("row %d is in %s and %s", in.row, other, name)
			}
			tried[in.row] = name
		}
	}
	for row := 1; row <= inputRows; row++ {
		if tried[row] == "" {
			t.Errorf("row %d is not tried", row)
		}
	}
}

// suffersAll takes one input after the other.
func (s *stack) suffersAll(t *testing.T, list []input) {
	for _, in := range list {
		t.Run(fmt.Sprintf("%d %s", in.row, in.what), func(t *testing.T) { s.suffers(t, in) })
	}
}

// suffers takes one input, and shows that nobody else does.
func (s *stack) suffers(t *testing.T, in input) {
	t.Helper()
	before, want := s.events(t), in.events
	if in.does != nil {
		want = in.does(t, s)
	} else {
		answers, closed := s.raw(in.request, patience)
		in.answer(t, answers, closed)
	}
	if got := s.events(t) - before; got != want {
		t.Errorf("%d events were recorded, want %d", got, want)
	}
	s.serves(t, patience)
	if got := s.events(t) - before; got != want+1 {
		t.Errorf("with the innocent one's %d events were recorded, want %d", got, want+1)
	}
}

// events counts what is recorded.
func (s *stack) events(t *testing.T) int {
	t.Helper()
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return int(head) //nolint:gosec // a test's log is short
}

// serves checks that an innocent client is served in time, and says how soon.
func (s *stack) serves(t *testing.T, within time.Duration) time.Duration {
	t.Helper()
	raw := signed(t, newKey(t), testChain, 0)
	began := time.Now()
	res, err := s.send(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "Connection", "close")
	took := time.Since(began)
	if err != nil || res.status != http.StatusOK || !bytes.Contains(res.body, []byte(`"alreadyKnown":false`)) {
		t.Errorf("an innocent client was answered %v, %v", res, err)
	}
	if took > within {
		t.Errorf("an innocent client had to wait for %s", took)
	}
	return took
}

// besieged serves innocent clients, one after the other, for as long as an attack
// lasts, and returns how many there were.
func (s *stack) besieged(t *testing.T, within time.Duration, attack func()) (served int) {
	t.Helper()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		slowest := time.Duration(0)
		for on := true; on; {
			slowest = max(slowest, s.serves(t, within))
			served++
			select {
			case <-over:
				on = false
			default:
			}
		}
		t.Logf("%d innocent clients were served meanwhile, the slowest within %s", served, slowest.Round(time.Millisecond))
	}()
	attack()
	close(over)
	<-ended
	return served
}

// refuses wants one problem. Its own title and type are in the contract.
func refuses(status int, code event.Refusal) judge {
	return func(t *testing.T, answers []response, _ bool) {
		t.Helper()
		if len(answers) != 1 {
			t.Fatalf("%d answers: %v", len(answers), answers)
		}
		p := wantProblem(t, string(code), answers[0], status, code)
		want := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
		if p.Retryable != want {
			t.Errorf("retryable: %v", p.Retryable)
		}
	}
}

// cuts is refuses where the connection ends too, as announced.
func cuts(status int, code event.Refusal) judge {
	refused := refuses(status, code)
	return func(t *testing.T, answers []response, closed bool) {
		t.Helper()
		refused(t, answers, closed)
		if !answers[0].closes || !closed {
			t.Errorf("announced to close: %v, closed: %v", answers[0].closes, closed)
		}
	}
}

// answers wants one answer with one of these statuses, and the connection's end. It is
// for what net/http answers in our place, and for what is fine.
func answers(statuses ...int) judge {
	return func(t *testing.T, answers []response, closed bool) {
		t.Helper()
		if len(answers) != 1 || !slices.Contains(statuses, answers[0].status) || !closed {
			t.Errorf("closed %v, answers: %v; want one of %v", closed, answers, statuses)
		}
	}
}

// isSilent wants the connection's end and nothing before it.
func isSilent(t *testing.T, answers []response, closed bool) {
	t.Helper()
	if len(answers) != 0 || !closed {
		t.Errorf("closed %v, answers: %v", closed, answers)
	}
}

// inItsPlace wants the problem of a batch's only item.
func inItsPlace(status int, code event.Refusal, reason string) judge {
	return func(t *testing.T, answers []response, _ bool) {
		t.Helper()
		r := onlyResult(t, answers)
		if p := r.Problem; r.OK || p.Status != status || p.Code != string(code) || p.Reason != reason || p.Detail == "" {
			t.Errorf("answered %+v, want %d %s %s", r, status, code, reason)
		}
	}
}

// isTaken wants a batch's only item to be taken on. Where it is tried, an event is wanted.
func isTaken(t *testing.T, answers []response, _ bool) {
	t.Helper()
	if r := onlyResult(t, answers); !r.OK || r.Status != "queued" || r.AlreadyKnown {
		t.Errorf("answered %+v", r)
	}
}

func onlyResult(t *testing.T, answers []response) result {
	t.Helper()
	var out struct{ Results []result }
	if len(answers) != 1 || answers[0].status != http.StatusOK {
		t.Fatalf("answers: %v", answers)
	}
	if unmarshal(t, answers[0].body, &out); len(out.Results) != 1 {
		t.Fatalf("answered %v", answers[0])
	}
	return out.Results[0]
}

// posted is a whole request to submit.
func posted(body string) string {
	return post(fmt.Sprintf("%sConnection: close\r\nContent-Length: %d\r\n", jsonType, len(body)), body)
}
