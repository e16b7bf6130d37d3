package keystest

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Server is a double of a remote signer: it speaks, over real HTTP, the part of
// Web3Signer's API that concerns keys of Ethereum accounts, as Web3Signer's source
// has it, for keys of P-256 as well. It draws its k at random and gives the higher s
// as often as the lower one, as vaults do. It is not Web3Signer, and can do what
// signers and networks do; see [Trouble].
type Server struct {
	URL string

	mu      sync.Mutex
	keys    map[string]*Key // by x y in hex
	listed  []string
	trouble Trouble
	signed  int
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

// Serve starts a server with these keys, which ends with the test.
func Serve(t testing.TB, held ...*Key) *Server {
	t.Helper()
	return serve(t, nil, held)
}

// serve speaks TLS with this configuration, or without.
func serve(t testing.TB, secured *tls.Config, held []*Key) *Server {
	s := &Server{keys: map[string]*Key{}}
	for _, k := range held {
		name := hex.EncodeToString(k.public())
		s.keys[name] = k
		s.listed = append(s.listed, "0x"+name)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/eth1/publicKeys", s.troubled(s.list))
	mux.HandleFunc("POST /api/v1/eth1/sign/{key}", s.troubled(s.sign))
	server := httptest.NewUnstartedServer(mux)
	if secured == nil {
		server.Start()
	} else {
		server.TLS = secured
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Misbehave lets it do this from now on.
func (s *Server) Misbehave(trouble Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = trouble
}

// Signed is how many signatures it has made.
func (s *Server) Signed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
}

// answer gives the body for a request, or the status of an error.
type answer func(body []byte, r *http.Request, trouble Trouble) (text string, status int)

func (s *Server) troubled(a answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		s.mu.Lock()
		trouble := s.trouble
		s.mu.Unlock()
		if trouble.Reached != nil {
			trouble.Reached()
		}
		if trouble.Hang {
			<-r.Context().Done()
			return
		}
		text, status := a(body, r, trouble)
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
			w.Header().Set("Content-Length", "140")
			text = text[:len(text)/2]
		}
		w.WriteHeader(status)
		_, err = io.WriteString(w, text)
		for trouble.Huge && err == nil {
			_, err = io.WriteString(w, strings.Repeat("0", 1<<16))
		}
		if trouble.Cut {
			http.NewResponseController(w).Flush() //nolint:errcheck // the client may have gone
			panic(http.ErrAbortHandler)
		}
	}
}

// list answers with the public keys.
func (s *Server) list([]byte, *http.Request, Trouble) (string, int) {
	text, err := json.Marshal(s.listed)
	if err != nil {
		return "", http.StatusInternalServerError
	}
	return string(text), http.StatusOK
}

// sign signs the Keccak-256 of the data.
func (s *Server) sign(body []byte, r *http.Request, trouble Trouble) (string, int) {
	var asked struct{ Data *string }
	if err := json.Unmarshal(body, &asked); err != nil || asked.Data == nil || r.Header.Get("Content-Type") != "application/json" {
		return "", http.StatusBadRequest
	}
	data, err := hex.DecodeString(strings.TrimPrefix(*asked.Data, "0x"))
	if err != nil {
		return "", http.StatusBadRequest
	}
	key, there := s.keys[strings.TrimPrefix(r.PathValue("key"), "0x")]
	if !there {
		return "", http.StatusNotFound
	}
	if trouble.By != nil {
		key = trouble.By
	}
	s.mu.Lock()
	s.signed++
	s.mu.Unlock()
	return "0x" + hex.EncodeToString(key.sign(chain.Keccak(data), trouble)), http.StatusOK
}
