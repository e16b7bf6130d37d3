package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

type settings struct {
	address, namespace, authorities string
	token, tokenFile                string
}

// transit is Vault's transit engine.
//
// Source: https://developer.hashicorp.com/vault/api-docs/secret/transit, "Read key" and
// "Sign data".
type transit struct {
	base      string
	namespace string
	token     func() (string, error)
	http      *http.Client
}

// connect reads the settings. It sends no request yet.
func connect(s settings) (*transit, error) {
	u, err := url.Parse(s.address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("-vault (VAULT_ADDR) must be https://host:port, without user, query and fragment")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the Vault %s is on another machine, so it must use https", u.Host)
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.authorities != "" {
		text, err := os.ReadFile(s.authorities)
		if err != nil {
			return nil, err
		}
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no PEM certificate", s.authorities)
		}
	}
	t := &transit{base: strings.TrimSuffix(u.String(), "/") + "/v1/", namespace: s.namespace, http: program.Client(secured), token: s.readToken}
	_, err = t.token()
	return t, err
}

// readToken returns the token. It refuses characters that headers may not contain.
func (s settings) readToken() (string, error) {
	token, where := s.token, "VAULT_TOKEN"
	if s.tokenFile != "" {
		where = s.tokenFile
		text, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return "", err
		}
		token = string(bytes.TrimSpace(text))
	}
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s has no token", where)
	}
	return token, nil
}

// place identifies a key, in one version: another version is another account.
type place struct{ mount, name, version string }

func parsePlace(text string) (place, error) {
	path, version, _ := strings.Cut(text, "@")
	mount, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		mount, name = path[:i], path[i+1:]
	}
	if n, err := strconv.Atoi(version); err != nil || n < 1 || strconv.Itoa(n) != version || mount == "" || name == "" {
		return place{}, keys.ErrBadSetting.Because("%q is not MOUNT/NAME@VERSION with a version of at least 1", text)
	}
	return place{mount, name, version}, nil
}

// PublicKey reads a key of the engine, and returns its version's public key.
func (t *transit) PublicKey(ctx context.Context, key string) ([]byte, error) {
	at, err := parsePlace(key)
	if err != nil {
		return nil, err
	}
	var data struct {
		Type string
		Keys map[string]json.RawMessage // numbers for other types of keys
	}
	if err := t.ask(ctx, http.MethodGet, at.mount, "keys", at.name, nil, &data); err != nil {
		return nil, err
	}
	if data.Type != "ecdsa-p256" {
		return nil, keys.ErrBadKey.Because("the key's type is not ecdsa-p256, the only type of Vault that a chain accepts")
	}
	var version struct {
		PublicKey string `json:"public_key"`
	}
	if text, there := data.Keys[at.version]; !there || json.Unmarshal(text, &version) != nil {
		return nil, keys.ErrBadKey.Because("the key has no version %s", at.version)
	}
	return []byte(version.PublicKey), nil
}

// Sign signs a digest. The request marks it as hashed, so that Vault does not hash it again.
func (t *transit) Sign(ctx context.Context, key string, digest chain.Hash) ([]byte, error) {
	at, err := parsePlace(key)
	if err != nil {
		return nil, err
	}
	version, err := strconv.Atoi(at.version)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{
		"input": base64.StdEncoding.EncodeToString(digest[:]), "prehashed": true, "hash_algorithm": "sha2-256",
		"marshaling_algorithm": "asn1", "key_version": version,
	})
	if err != nil {
		return nil, err
	}
	var data struct{ Signature string }
	if err := t.ask(ctx, http.MethodPost, at.mount, "sign", at.name, body, &data); err != nil {
		return nil, err
	}
	text, ours := strings.CutPrefix(data.Signature, "vault:v"+at.version+":")
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !ours {
		return nil, errors.New("the response has no signature by the requested version of the key")
	}
	return signature, nil
}

// ask sends a request to the engine, and decodes the data of its answer.
func (t *transit) ask(ctx context.Context, method, mount, what, name string, body []byte, data any) error {
	token, err := t.token()
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, t.base+escaped(mount)+"/"+what+"/"+url.PathEscape(name), sent)
	if err != nil {
		return errors.New("the request could not be built")
	}
	request.Header.Set("X-Vault-Token", token)
	request.Header.Set("X-Vault-Request", "true") // Vault Agent may require it
	if t.namespace != "" {
		request.Header.Set("X-Vault-Namespace", t.namespace)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := program.Ask(t.http, request)
	if err == nil {
		err = meaning(answer)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Body, &struct{ Data any }{data}); err != nil { // its text quotes the answer
		return errors.New("the response is not a response of Vault")
	}
	return nil
}

// meaning classifies an answer by its status. Source:
// https://developer.hashicorp.com/vault/api-docs#http-status-codes.
func meaning(a program.Answer) error {
	switch a.Status {
	case http.StatusForbidden:
		return keys.ErrRejected.Because("Vault answered 403: the token lacks the permission, or is no longer valid")
	case http.StatusNotFound:
		return keys.ErrRejected.Because("Vault answered 404: the key does not exist")
	case http.StatusPreconditionFailed: // a replica that does not have the token yet
		return &keys.Busy{Status: a.Status}
	default:
		return a.Err()
	}
}

// escaped escapes the elements of a path.
func escaped(path string) string {
	elements := strings.Split(strings.Trim(path, "/"), "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}
