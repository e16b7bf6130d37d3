package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// custodian is Cloud KMS, through its REST API: the gRPC library would add a hundred packages
// for two calls.
//
// Source: https://cloud.google.com/kms/docs/reference/rest/v1, the methods asymmetricSign and
// getPublicKey of cryptoKeyVersions.
type custodian struct {
	base   string
	http   *http.Client
	tokens *tokens
}

// connect sends no request yet.
func connect(endpoint string) (custodian, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return custodian{}, errors.New("-endpoint must be https://host:port, without user, query and fragment")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return custodian{}, fmt.Errorf("the endpoint %s is on another machine, so it must use https", u.Host)
	}
	client := program.Client(nil)
	return custodian{strings.TrimSuffix(u.String(), "/") + "/v1/", client, newTokens(client)}, nil
}

// aVersion is the name of a key version, which becomes part of a path.
var aVersion = regexp.MustCompile(`^projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+/cryptoKeyVersions/[1-9]\d*$`)

// PublicKey reads a key's public key. Here the algorithm belongs to the key.
func (c custodian) PublicKey(ctx context.Context, key string) ([]byte, error) {
	var out struct{ PEM, Algorithm string }
	if err := c.ask(ctx, http.MethodGet, key, "/publicKey", nil, &out); err != nil {
		return nil, err
	}
	if out.Algorithm != "EC_SIGN_P256_SHA256" && out.Algorithm != "EC_SIGN_SECP256K1_SHA256" {
		return nil, keys.ErrBadKey.Because("the key is neither for EC_SIGN_P256_SHA256 nor for EC_SIGN_SECP256K1_SHA256")
	}
	return []byte(out.PEM), nil
}

// Sign signs a digest. The field's name includes SHA-256, but the service checks only the
// length: it does not hash again.
func (c custodian) Sign(ctx context.Context, key string, digest chain.Hash) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"digest": map[string][]byte{"sha256": digest[:]}})
	if err != nil {
		return nil, err
	}
	var out struct{ Signature []byte }
	if err := c.ask(ctx, http.MethodPost, key, ":asymmetricSign", body, &out); err != nil {
		return nil, err
	}
	return out.Signature, nil
}

// errStale: the service no longer accepts a token.
var errStale = errors.New("the access token is no longer accepted")

// ask sends a request about a key, and reads the answer. A token may be revoked before its
// expiry: it retries once with a new token.
func (c custodian) ask(ctx context.Context, method, key, what string, body []byte, out any) error {
	if !aVersion.MatchString(key) {
		return keys.ErrBadSetting.Because("%q is not the name of a key version, projects/…/cryptoKeyVersions/1", key)
	}
	err := c.askOnce(ctx, method, key+what, body, out)
	if errors.Is(err, errStale) {
		err = c.askOnce(ctx, method, key+what, body, out)
	}
	return err
}

func (c custodian) askOnce(ctx context.Context, method, path string, body []byte, out any) error {
	token, err := c.tokens.get(ctx)
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return errors.New("the request could not be built")
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := program.Ask(c.http, request)
	if err == nil {
		err = c.meaning(answer)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Body, out); err != nil { // its text quotes the answer
		return errors.New("the response is not a response of Cloud KMS")
	}
	return nil
}

// meaning classifies an answer by its status. Sources: https://google.aip.dev/193,
// google/rpc/error_details.proto (RetryInfo).
func (c custodian) meaning(a program.Answer) error {
	err := a.Err()
	if err == nil {
		return nil
	}
	var said struct {
		Error struct {
			Status  string
			Details []struct {
				RetryDelay string `json:"retryDelay"`
			}
		}
	}
	_ = json.Unmarshal(a.Body, &said) // the answer may have no more than a status
	if a.Status == http.StatusUnauthorized {
		c.tokens.forget()
		return errStale
	}
	busy := (*keys.Busy)(nil)
	if !errors.As(err, &busy) {
		return keys.ErrRejected.Because("Cloud KMS answered %d %s", a.Status, aWord.FindString(said.Error.Status))
	}
	for _, d := range said.Error.Details {
		if pause, err := time.ParseDuration(d.RetryDelay); err == nil {
			busy.After = min(max(busy.After, pause), keys.MaxRetryAfter)
		}
	}
	return busy
}

// aWord is the name of an error, for example PERMISSION_DENIED.
var aWord = regexp.MustCompile(`^[A-Z_]{1,50}$`)
