package keystest

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Double is a test server over real HTTP that can reproduce faults of servers and networks; see
// [Trouble].
type Double struct {
	URL string

	mu      sync.Mutex
	trouble Trouble
}

// Trouble is a server's fault; its zero value is none.
type Trouble struct {
	// Reached is called with every request, before any other processing.
	Reached func()
	// Status, if set, is returned with the header and Body.
	Status int
	Header http.Header
	// Body, if set, is returned instead of the real body.
	Body string
	Hang bool // no answer until the client is gone
	Cut  bool // half of the answer, then the connection breaks
	Huge bool // an answer that ends only when the client is gone

	HighS bool // always the higher s
	LowS  bool // always the lower s
	Form  Form
	By    *Key // signs instead of the requested key
}

// Form is an encoding of a signature.
type Form int

const (
	RSV27      Form = iota // r s v with v of 27 or 28: Web3Signer's
	RSV0                   // r s v with v of 0 or 1
	RSWrongV               // r s v with the v of the other parity
	RSStrangeV             // r s v with v of 99
	RS                     // no v
	DER                    // the form of key vaults
)

// Start starts the server; the test's cleanup stops it. It uses TLS if secured is set.
func (d *Double) Start(t testing.TB, handler http.Handler, secured *tls.Config) {
	server := httptest.NewUnstartedServer(handler)
	if secured == nil {
		server.Start()
	} else {
		server.TLS = secured
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	d.URL = server.URL
}

// Misbehave sets the server's trouble from now on.
func (d *Double) Misbehave(trouble Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble = trouble
}

// MisbehaveOnce sets the server's trouble for the next request only.
func (d *Double) MisbehaveOnce(trouble Trouble) {
	trouble.Reached = sync.OnceFunc(func() { d.Misbehave(Trouble{}) })
	d.Misbehave(trouble)
}

// Answer returns the body for a request, or the status of an error.
type Answer func(body []byte, r *http.Request, trouble Trouble) (text string, status int)

// Does is a handler that uses a, unless the current trouble replaces it.
func (d *Double) Does(a Answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		d.mu.Lock()
		trouble := d.trouble
		d.mu.Unlock()
		if trouble.Reached != nil {
			trouble.Reached()
		}
		if trouble.Hang {
			<-r.Context().Done()
			return
		}
		text, status := a(body, r, trouble)
		write(w, text, status, trouble)
	}
}

// write writes the answer, or cuts it off.
func write(w http.ResponseWriter, text string, status int, trouble Trouble) {
	if trouble.Body != "" {
		text = trouble.Body
	}
	if trouble.Status != 0 {
		status = trouble.Status
		for name, values := range trouble.Header {
			w.Header()[name] = values
		}
	}
	if trouble.Cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
		text = text[:len(text)/2]
	}
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	for trouble.Huge && err == nil {
		_, err = io.WriteString(w, strings.Repeat("0", 1<<16))
	}
	if trouble.Cut {
		http.NewResponseController(w).Flush() //nolint:errcheck // the client may have gone
		panic(http.ErrAbortHandler)
	}
}
