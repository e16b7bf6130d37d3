package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Errors of a link, and invalid answers.
var (
	errLink    = errors.New("simulated link: connection reset")
	errLimited = errors.New("simulated link: 429")
	errGarbage = errors.New("simulated link: garbage")
)

// links are a replica's connections to nodes, for its pools' requests.
type links struct{ *replica }

// host is the name of a node in URLs.
func host(i int) string { return fmt.Sprintf("node%d.simulated", i) }

func (l links) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	node := l.world.nodes[req.URL.Host]
	var answer *http.Response
	err = l.call(req.Context(), asking, req.URL.Host+" "+question(body), func() {
		answer = l.world.serve(node, body) //nolint:bodyclose // it is memory, and the pool's to close
	})
	switch {
	case errors.Is(err, errLimited):
		return respond(req, http.StatusTooManyRequests, "", http.Header{"Retry-After": {"1"}}), nil
	case errors.Is(err, errGarbage):
		return respond(req, http.StatusBadGateway, "<html>bad gateway</html>", nil), nil
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, errLink
	}
	answer.Request = req
	return answer, nil
}

// serve returns a node's answer; nil when it cuts the connection.
func (w *world) serve(n *node, body []byte) (answer *http.Response) {
	if n.down > w.agenda.now() {
		w.faults["node: down"]++
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // as net/http does
			panic(cause)
		}
	}()
	req, err := http.NewRequest(http.MethodPost, "http://"+n.host, bytes.NewReader(body)) //nolint:noctx // it ends at once
	if err != nil {
		panic(err) // the URL is ours
	}
	out := newRecorder()
	n.node.ServeHTTP(out, req)
	return respond(nil, out.status, out.body.String(), out.header)
}

func respond(req *http.Request, status int, body string, header http.Header) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// question is the content of a JSON-RPC request without the ids, which count requests.
func question(body []byte) string {
	const id = `"id":`
	var text strings.Builder
	for {
		i := bytes.Index(body, []byte(id))
		if i < 0 {
			text.Write(body)
			return text.String()
		}
		text.Write(body[:i])
		body = bytes.TrimLeft(body[i+len(id):], "0123456789")
	}
}

// recorder stores a handler's answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// Flush is called by event streams. The answer is read only at its end.
func (r *recorder) Flush() {}

// SetWriteDeadline is called through http.ResponseController. No answer is slow here.
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }
