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

// Double is a server of a test's, over real HTTP, that can do what servers and networks
// do; see [Trouble].
type Double struct {
	URL string

	mu      sync.Mutex
	trouble Trouble
}

// Trouble is what a server does instead of what it should; its zero value is nothing.
type Trouble struct {
	// Reached is called with every request, before anything else is done.
	Reached func()
	// Status, when it is set, is answered with the header and Body.
	Status int
	Header http.Header
	// Body, when it is set, is answered instead of what was asked for.
	Body string
	Hang bool // no answer until the client has gone
	Cut  bool // half of the answer, and the connection breaks
	Huge bool // an answer that ends when the client has gone

	HighS bool // always the higher s
	LowS  bool // always the lower one
	Form  Form
	By    *Key // signs instead of the key that was asked for
}

// Form is how a signature is written.
type Form int

const (
	RSV27      Form = iota // r s v with v of 27 or 28: Web3Signer's
	RSV0                   // r s v with v of 0 or 1
	RSWrongV               // r s v, where v is of the other parity
	RSStrangeV             // r s v, where v is 99
	RS                     // no v
	DER                    // as vaults give it
)

// Start starts the server, which ends with the test. It speaks TLS with this
// configuration, or without.
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

// Misbehave lets it do this from now on.
func (d *Double) Misbehave(trouble Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble = trouble
}

// MisbehaveOnce lets it do this to the next request, and then behave.
func (d *Double) MisbehaveOnce(trouble Trouble) {
	trouble.Reached = sync.OnceFunc(func() { d.Misbehave(Trouble{}) })
	d.Misbehave(trouble)
}

// Answer gives the body for a request, or the status of an error.
type Answer func(body []byte, r *http.Request, trouble Trouble) (text string, status int)

// Does is a handler that answers so, unless the trouble of the moment is another.
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

// write answers, or breaks off.
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
