package keystest

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Server is a double of a remote signer. Over real HTTP it implements the part of Web3Signer's
// API for keys of Ethereum accounts, according to Web3Signer's source, for keys of P-256 as
// well. It draws k at random, and returns the higher s as often as the lower one, like vaults.
// It is not Web3Signer.
type Server struct {
	Double

	keys   map[string]*Key // by x y in hex
	listed []string
	signed atomic.Int64
}

// Serve starts a server with these keys; the test's cleanup stops it.
func Serve(t testing.TB, held ...*Key) *Server {
	t.Helper()
	return serve(t, nil, held)
}

// serve serves with TLS if secured is set.
func serve(t testing.TB, secured *tls.Config, held []*Key) *Server {
	s := &Server{keys: map[string]*Key{}}
	for _, k := range held {
		name := hex.EncodeToString(k.Public())
		s.keys[name] = k
		s.listed = append(s.listed, "0x"+name)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/eth1/publicKeys", s.Does(s.list))
	mux.HandleFunc("POST /api/v1/eth1/sign/{key}", s.Does(s.sign))
	s.Start(t, mux, secured)
	return s
}

// Signed is the number of signatures made.
func (s *Server) Signed() int { return int(s.signed.Load()) }

// list returns the public keys.
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
	s.signed.Add(1)
	return "0x" + hex.EncodeToString(key.Sign(chain.Keccak(data), trouble)), http.StatusOK
}
