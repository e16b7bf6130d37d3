package delivery

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// An input is a request that no client should send, or that must gain a client nothing. row is
// its number in the table of docs/proof/reliability.md.
type input struct {
	row  int
	what string
	// request is sent as it is, on a separate connection; answer judges the answers.
	request string
	answer  judge
	// does is for inputs of several requests. It returns how many events it rightly caused. A
	// request that is answered as expected causes as many as events says.
	does   func(t *testing.T, s *stack) int
	events int
}

// A judge checks the answers on a connection, and whether the server closed it.
type judge func(t *testing.T, answers []response, closed bool)

// inputRows is the number of rows.
const inputRows = 67

// families returns the tables of all inputs.
func families(t *testing.T) map[string][]input {
	return map[string][]input{
		"envelope": envelopeInputs(t), "path": pathInputs(t), "JSON": jsonInputs(t), "submit": submitInputs(t), "raw": rawInputs(t),
	}
}

// Every input gets the expected answer and causes only the expected events, and other clients
// are served.
func TestEnvelopeInputs(t *testing.T) { newStack(t, quick).suffersAll(t, envelopeInputs(t)) }
func TestPathInputs(t *testing.T)     { newStack(t).suffersAll(t, pathInputs(t)) }
func TestJSONInputs(t *testing.T)     { newStack(t).suffersAll(t, jsonInputs(t)) }
func TestSubmitInputs(t *testing.T)   { newStack(t).suffersAll(t, submitInputs(t)) }
func TestRawInputs(t *testing.T)      { newStack(t).suffersAll(t, rawInputs(t)) }

// No row is missing, and no row is in two families.
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

// suffersAll sends the inputs one after the other.
func (s *stack) suffersAll(t *testing.T, list []input) {
	for _, in := range list {
		t.Run(fmt.Sprintf("%d %s", in.row, in.what), func(t *testing.T) { s.suffers(t, in) })
	}
}

// suffers sends one input, and checks that other clients are served.
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

// events counts the recorded events.
func (s *stack) events(t *testing.T) int {
	t.Helper()
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return int(head) //nolint:gosec // a test's log is short
}

// serves checks that an innocent client is served in time, and returns how long it took.
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

// besieged serves innocent clients, one after the other, while an attack runs. It returns how
// many were served.
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

// refuses expects one problem, with the title and type of the contract.
func refuses(status int, code eventlog.Refusal) judge {
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

// cuts is refuses with an announced end of the connection.
func cuts(status int, code eventlog.Refusal) judge {
	refused := refuses(status, code)
	return func(t *testing.T, answers []response, closed bool) {
		t.Helper()
		refused(t, answers, closed)
		if !answers[0].closes || !closed {
			t.Errorf("announced to close: %v, closed: %v", answers[0].closes, closed)
		}
	}
}

// answers expects one answer with one of these statuses, and the connection's end. It is for
// answers of net/http itself, and for successes.
func answers(statuses ...int) judge {
	return func(t *testing.T, answers []response, closed bool) {
		t.Helper()
		if len(answers) != 1 || !slices.Contains(statuses, answers[0].status) || !closed {
			t.Errorf("closed %v, answers: %v; want one of %v", closed, answers, statuses)
		}
	}
}

// isSilent expects the end of the connection and no answer.
func isSilent(t *testing.T, answers []response, closed bool) {
	t.Helper()
	if len(answers) != 0 || !closed {
		t.Errorf("closed %v, answers: %v", closed, answers)
	}
}

// inItsPlace expects the problem of a batch's only item.
func inItsPlace(status int, code eventlog.Refusal, reason string) judge {
	return func(t *testing.T, answers []response, _ bool) {
		t.Helper()
		r := onlyResult(t, answers)
		if p := r.Problem; r.OK || p.Status != status || p.Code != string(code) || p.Reason != reason || p.Detail == "" {
			t.Errorf("answered %+v, want %d %s %s", r, status, code, reason)
		}
	}
}

// isTaken expects a batch's only item to be accepted, which causes one event.
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

// posted is a whole request to submit a body.
func posted(body string) string {
	return post(fmt.Sprintf("%sConnection: close\r\nContent-Length: %d\r\n", jsonType, len(body)), body)
}
