package rpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// Signed bytes that a node quotes are not recorded.
func TestNoSignedBytesInAnswers(t *testing.T) {
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	p := open(t, func(c *Config) { c.Endpoints = []Endpoint{{URL: serve(t, g)}} })
	raw, hash := plain(alice, key5, 0)
	for _, quoted := range []string{hex.EncodeToString(raw), "0X" + strings.ToUpper(hex.EncodeToString(raw)), hex.EncodeToString(raw[:33])} {
		g.misbehave(send, func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"cannot decode 0x%s (%s)"}}`, idOf(body), quoted, hash)
		})
		answer := p.Send(t.Context(), raw, hash, 0, tx.Sending{})[0]
		if !strings.Contains(answer.Message, "[hex] ("+hash.String()+")") || strings.Contains(strings.ToLower(answer.Message), hex.EncodeToString(raw[:16])) {
			t.Errorf("recorded %q", answer.Message)
		}
	}
}

func TestNoSecretsInAnswers(t *testing.T) {
	const secret = "s3cr3t-api-key"
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	base := serve(t, g)
	url := strings.Replace(base, "http://", "http://user:"+secret+"-pw@", 1) + "/v2/" + secret + "?token=" + secret + "-q"
	p := open(t, func(c *Config) {
		c.Endpoints = []Endpoint{{URL: url}}
		c.SendTimeout = 100 * time.Millisecond
	})
	raw, hash := plain(alice, key5, 0)
	var said []string
	for _, instead := range []func(w http.ResponseWriter, r *http.Request, body []byte){
		func(w http.ResponseWriter, r *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no project at %s"}}`, idOf(body), r.URL)
		},
		func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) },
		func(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() },
	} {
		g.misbehave(send, instead)
		for _, answer := range p.Send(t.Context(), raw, hash, 0, tx.Sending{}) {
			said = append(said, answer.Endpoint, answer.Message)
		}
	}
	for _, status := range p.Status() {
		said = append(said, fmt.Sprintf("%+v", status))
	}
	for _, bad := range []string{"http://" + secret + "\x7f", "http:///" + secret, "ftp://host/" + secret, secret} {
		_, err := Open(t.Context(), Config{Chain: id, Endpoints: []Endpoint{{URL: bad}}})
		said = append(said, err.Error())
	}
	g.misbehave("", func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) })
	_, err := p.Reader().Head(t.Context())
	said = append(said, err.Error())
	for _, s := range said {
		if strings.Contains(s, secret) || strings.Contains(s, "user") {
			t.Errorf("%q", s)
		}
	}
	if want := strings.TrimPrefix(base, "http://"); said[0] != want {
		t.Errorf("named %q, want %q", said[0], want)
	}
	if lost := (*Unreachable)(nil); !errors.As(err, &lost) {
		t.Errorf("error %v", err)
	}
}
