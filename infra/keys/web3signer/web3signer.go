// Package web3signer serves signers to other processes, by the part of Web3Signer's HTTP API
// for keys of Ethereum accounts, which [keys.Remote] uses:
//
//	GET  /api/v1/eth1/publicKeys   the public keys, x y in hex, as a JSON array
//	POST /api/v1/eth1/sign/{key}   {"data":"0x…"}: a signature of the data's Keccak-256
//	GET  /upcheck                  200: the process is there
//	GET  /healthcheck              200: its keys can be used, or 503
//
// A signature of secp256k1 is r s v with v of 27 or 28. A signature of P-256, which Web3Signer
// does not support here, is r s. Both have the lower s.
//
// A request that cannot be signed now, for any reason, gets 429 or 5xx: the transaction then
// waits. A client may read other statuses as its transaction's fault, so only faulty requests
// get them.
//
// Source: Consensys/web3signer, openapi-specs/eth1.
package web3signer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// maxBody is the largest request body, in bytes: the largest payload in hex, and the JSON
// around it.
const maxBody = 2*keys.MaxPayload + 256

// Settings are the settings of a server.
type Settings struct {
	// AtOnce is the number of signatures made at once. Four times as many requests may wait;
	// above that, the answer is 429. At least 1.
	AtOnce int
	// Timeout bounds one request, including its retries.
	Timeout time.Duration
	// Check reports whether the keys can be used. It is called at most once per [HealthFor].
	Check func(context.Context) error
	// Log logs each failed signature, without the payload and without signatures.
	Log *slog.Logger
}

type server struct {
	Settings
	signers   map[string]*keys.Signer // by x y in hex
	listed    []byte
	custodian *custodian
	health    health
}

// Handler serves these signers, which the caller still owns. The caller's server must
// authenticate clients and reject requests caused by a browser's page.
func Handler(signers []*keys.Signer, settings Settings) (http.Handler, error) {
	if settings.AtOnce < 1 || settings.Timeout <= 0 {
		return nil, keys.ErrBadSetting.Because("%d parallel signatures, each within %s, are not possible", settings.AtOnce, settings.Timeout)
	}
	s := &server{
		Settings: settings, signers: map[string]*keys.Signer{},
		custodian: newCustodian(settings.AtOnce), health: health{check: settings.Check},
	}
	names := []string{}
	for _, one := range signers {
		name := hex.EncodeToString(one.PublicKey())
		s.signers[name] = one
		names = append(names, "0x"+name)
	}
	var err error
	if s.listed, err = json.Marshal(names); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/eth1/publicKeys", s.list)
	mux.HandleFunc("POST /api/v1/eth1/sign/{key}", s.sign)
	mux.HandleFunc("GET /upcheck", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, "text/plain", "OK") })
	mux.HandleFunc("GET /healthcheck", s.healthcheck)
	return mux, nil
}

func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/json", string(s.listed))
}

func (s *server) sign(w http.ResponseWriter, r *http.Request) {
	signer, there := s.signers[strings.ToLower(strings.TrimPrefix(r.PathValue("key"), "0x"))]
	if !there {
		write(w, http.StatusNotFound, "text/plain", "there is no such key")
		return
	}
	payload, fault := readPayload(w, r)
	if fault != "" {
		write(w, http.StatusBadRequest, "text/plain", fault)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	signature, err := s.custodian.sign(ctx, signer, payload, s.Timeout)
	switch {
	case err == nil:
		write(w, http.StatusOK, "text/plain", "0x"+hex.EncodeToString(written(signer.Kind(), signature)))
	case r.Context().Err() != nil: // the client is gone
	default:
		status, after := meaning(err)
		s.Log.Warn("no signature", "signer", signer, "status", status, "error", err)
		if after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		}
		write(w, status, "text/plain", http.StatusText(status))
	}
}

// readPayload reads a request. A browser's page cannot send its content type here without a
// preflight request.
func readPayload(w http.ResponseWriter, r *http.Request) (payload []byte, fault string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, "Content-Type must be application/json"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, "the request is too long or incomplete"
	}
	var asked struct {
		Data *string `json:"data"`
	}
	if err := json.Unmarshal(body, &asked); err != nil || asked.Data == nil {
		return nil, `the request must be {"data":"0x…"}`
	}
	payload, err = hex.DecodeString(strings.TrimPrefix(*asked.Data, "0x"))
	if err != nil || len(payload) == 0 || len(payload) > keys.MaxPayload {
		return nil, "the data must be 1 to " + strconv.Itoa(keys.MaxPayload) + " bytes in hex"
	}
	return payload, ""
}

// written converts a signature from Tempo's form to Web3Signer's.
func written(kind chain.SignatureKind, signature []byte) []byte {
	if kind == chain.P256 {
		return signature[1:65]
	}
	signature[64] += 27
	return signature
}

// meaning returns the status for an error, and the pause for the client.
func meaning(err error) (status int, after time.Duration) {
	busy := (*keys.Busy)(nil)
	switch {
	case errors.As(err, &busy) && busy.Status == http.StatusTooManyRequests:
		return http.StatusTooManyRequests, max(busy.After, time.Second)
	case errors.As(err, &busy):
		return http.StatusServiceUnavailable, max(busy.After, time.Second)
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, 0
	default: // for example a signature by another key, or a service that no longer accepts us
		return http.StatusBadGateway, 0
	}
}

func write(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, text) //nolint:errcheck // the client has gone
}
