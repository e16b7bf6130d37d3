package clients_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Ways in which a request fails.
const (
	cutRequest fault = "cut-request" // the service never sees it
	cutAll     fault = "cut-all"     // the service sees no request any more in this step
	cutReply   fault = "cut-reply"   // the service has carried it out
	halfReply  fault = "half-reply"  // the connection ends within the body
	cutStream  fault = "cut-stream"  // the connection ends after some lines
	badGateway fault = "bad-gateway" // the service has carried it out, and a proxy answers 502
	busy       fault = "busy"        // the service answers 503 and has done nothing
	signIn     fault = "sign-in"     // a network answers 200 with a page of its own
)

// faults are the faults of the present step, for the requests that come next.
type faults struct {
	mu   sync.Mutex
	left []fault
}

func (f *faults) set(all []fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = slices.Clone(all)
}

func (f *faults) next() (next fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.left) > 0 {
		next = f.left[0]
	}
	if next != "" && next != cutAll {
		f.left = f.left[1:]
	}
	return next
}

// open is the number of faults that no request has met yet.
func (f *faults) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.left), func(f fault) bool { return f == cutAll }))
}

// gate is a proxy before a service. It fails requests as it is told, and reports the operations
// that the service has carried out.
type gate struct {
	url, key   string // key is an API key of the service
	service    string // URL
	operations []operation
	faults     *faults
	done       func(operationID string)
}

// operation is one operation of a contract.
type operation struct {
	id, method string
	path       *regexp.Regexp
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
}

func (g *gate) count(r *http.Request) {
	for _, o := range g.operations {
		if o.method == r.Method && o.path.MatchString(r.URL.Path) {
			g.done(o.id)
			return
		}
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next := g.faults.next()
	switch next {
	case cutRequest, cutAll:
		cut(w)
		return
	case busy:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"type":"about:blank","title":"busy","status":503,"code":"unavailable","retryable":true}`)
		return
	case signIn:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>sign in</html>")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	forwarded, err := http.NewRequestWithContext(r.Context(), r.Method, g.service+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	forwarded.Header, forwarded.Host = r.Header.Clone(), r.Host
	reply, err := http.DefaultTransport.RoundTrip(forwarded)
	if err != nil {
		cut(w)
		return
	}
	defer reply.Body.Close() //nolint:errcheck // read to its end
	if reply.StatusCode < http.StatusMultipleChoices {
		g.count(r)
	}
	g.pass(w, reply, next)
}

// pass hands a reply on, or the part of it that the fault leaves.
func (g *gate) pass(w http.ResponseWriter, reply *http.Response, next fault) {
	if next == cutReply || next == badGateway {
		_, _ = io.Copy(io.Discard, reply.Body)
	}
	switch next {
	case cutReply:
		cut(w)
		return
	case badGateway:
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	maps.Copy(w.Header(), reply.Header)
	w.WriteHeader(reply.StatusCode)
	part := make([]byte, 16<<10)
	for lines := 0; ; {
		n, err := reply.Body.Read(part)
		text := part[:n]
		lines += bytes.Count(text, []byte("\n"))
		if next == halfReply || next == cutStream && lines > 2 {
			text = text[:n/2]
		}
		_, _ = w.Write(text)
		_ = http.NewResponseController(w).Flush()
		switch {
		case next == halfReply && n > 0, next == cutStream && lines > 2:
			panic(http.ErrAbortHandler) // the connection ends here
		case err != nil:
			return
		}
	}
}

// cut ends a connection without an answer.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// pathOf is a pattern of the contract's path.
func pathOf(path string) *regexp.Regexp {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "[^/]+"
		} else {
			parts[i] = regexp.QuoteMeta(part)
		}
	}
	return regexp.MustCompile("^" + strings.Join(parts, "/") + "$")
}
