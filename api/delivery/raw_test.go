package delivery

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// raw sends bytes over a new connection and reads the answers, until the server closes the
// connection or the deadline passes.
func (s *stack) raw(text string, deadline time.Duration) (answers []response, closed bool) {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close() //nolint:errcheck // the test is over with it
	sent := make(chan struct{})
	go func() { // the server may answer and close before all is sent
		defer close(sent)
		_, _ = io.WriteString(conn, text)
	}()
	answers, closed = readAnswers(conn, deadline)
	conn.Close() //nolint:errcheck // ends the sender
	<-sent
	return answers, closed
}

func (s *stack) dial() net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func readAnswers(conn net.Conn, deadline time.Duration) (answers []response, closed bool) {
	_ = conn.SetReadDeadline(time.Now().Add(deadline))
	from := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			var late net.Error
			return answers, !errors.As(err, &late) || !late.Timeout()
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close() //nolint:errcheck // read to its end
		answers = append(answers, response{res.StatusCode, res.Header, body, res.Close})
	}
}
