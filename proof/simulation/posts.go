package simulation

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"

	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// errNoConnection is the error of a receiver's closed port.
var errNoConnection = errors.New("simulated link: connection refused")

// posts are a replica's connections to webhook receivers. They report a request's progress as
// net/http does.
type posts struct{ *replica }

func (p posts) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	to := p.world.hooks.hosts[req.URL.Host]
	if to == nil || to.name.Load() != outside {
		p.tell("webhook astray", func() {
			p.world.judge.fail("webhooks", "a request was made to %s, whose name does not mean the outside", req.URL.Host)
		})
		return nil, errNoConnection
	}
	var answer *http.Response
	var broken error
	err = p.call(req.Context(), posting, fmt.Sprintf("webhook %s %s", req.URL.Host, req.Header.Get(webhook.HeaderID)), func() {
		answer, broken = to.serve(p.replica, req, body) //nolint:bodyclose // it is memory, and the sender's to close
	})
	came := httptrace.ContextClientTrace(req.Context())
	if errors.Is(err, errNoConnection) {
		return nil, err
	}
	came.GotConn(httptrace.GotConnInfo{})
	if errors.Is(err, errGarbage) {
		came.GotFirstResponseByte()
	}
	switch {
	case err != nil: // answer and broken may yet be written to
		return nil, err
	case broken != nil:
		return nil, broken
	case answer == nil:
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	came.GotFirstResponseByte()
	return answer, nil
}

// drawPosting draws the fate of a request to a receiver.
func (w *world) drawPosting(c *call) fate {
	p, a := w.plan.Relay.Hooks, w.agenda
	f := fate{wait: w.delay(w.plan.NodeDelay / 2), reply: w.delay(w.plan.NodeDelay / 2)}
	to := w.hooks.hosts[strings.Fields(c.name)[1]]
	if w.healed || to.well() {
		return f
	}
	f.late = a.chance(0.5)
	switch {
	case a.chance(p.Refuse):
		f.name, f.lost, f.err = "webhook: refused", true, errNoConnection
	case a.chance(p.Lose):
		f.name, f.lost, f.err = "webhook: lost", true, errLink
	case a.chance(p.Cut):
		f.name, f.cut, f.err = "webhook: answer lost", true, errLink
		if a.chance(0.5) {
			f.name, f.cut, f.never = "webhook: answer never comes", false, true
		}
	case a.chance(p.Slow):
		f.name, f.wait, f.reply = "webhook: slow", a.between(0, slowMost), a.between(0, slowMost)
	case a.chance(p.Garbage):
		f.name, f.cut, f.err = "webhook: garbage", true, errGarbage
	}
	return f
}

// floodMost is the maximum number of bytes read of an endless answer, including buffers.
const floodMost = 2 * 64 << 10

// flood is an endless answer.
type flood struct {
	*replica
	read int
}

func (f *flood) Close() error { return nil }

func (f *flood) Read(p []byte) (int, error) {
	if f.read += len(p); f.read > floodMost {
		f.tell("webhook reads on", func() {
			f.world.judge.fail("webhooks", "more than %d bytes were read of an answer without end", floodMost)
		})
		return 0, io.ErrUnexpectedEOF
	}
	clear(p)
	return len(p), nil
}

// drip is an answer that starts and does not continue.
type drip struct{ req *http.Request }

func (d drip) Read([]byte) (int, error) {
	<-d.req.Context().Done()
	return 0, d.req.Context().Err()
}
