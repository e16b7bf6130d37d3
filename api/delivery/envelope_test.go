package delivery

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// patience is how long a test waits for an expected event. promptly is how long it waits to see
// that an event does not happen.
const (
	patience = 10 * time.Second
	promptly = 300 * time.Millisecond
)

// quick sets timeouts that are short enough for a test.
func quick(c *Config) {
	c.Limits.HeaderTimeout, c.Limits.ReadTimeout, c.Limits.IdleTimeout = 200*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
}

func post(headers, body string) string {
	return "POST /v1/transactions HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body
}

func get(target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
}

const jsonType = "Content-Type: application/json\r\n"

// A client that sends Expect: 100-continue is told to continue, and answered.
func TestExpectContinue(t *testing.T) {
	s := newStack(t)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	answers, _ := s.raw(post(fmt.Sprintf("%sExpect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n", jsonType, len(body)), string(body)), patience)
	if len(answers) != 2 || answers[0].status != http.StatusContinue || answers[1].status != http.StatusOK {
		t.Errorf("answers: %v", answers)
	}
}

// Row 17: more connections than allowed wait their turn.
func TestConnections(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.Connections = 2 })
	ask := "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	first, second, third := s.dial(), s.dial(), s.dial()
	defer second.Close() //nolint:errcheck // the test is over with it
	defer third.Close()  //nolint:errcheck // likewise
	// Both are in the middle of a body: an idle connection, or one without a header, would be
	// closed to make room.
	begun := post(jsonType+"Content-Length: 100\r\n", "{")
	_, _ = io.WriteString(first, begun)
	_, _ = io.WriteString(second, begun)
	_, _ = io.WriteString(third, ask)
	if answers, _ := readAnswers(third, promptly); len(answers) != 0 {
		t.Errorf("the third was served while there was no room: %v", answers)
	}
	first.Close() //nolint:errcheck // makes room
	if answers, _ := readAnswers(third, time.Second); len(answers) != 1 {
		t.Error("the third was not served when there was room")
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := newStack(t, quick)
	answers, closed := s.raw("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", patience)
	if len(answers) != 1 || !closed {
		t.Errorf("closed %v, answers: %v", closed, answers)
	}
}
