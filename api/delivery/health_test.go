package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A panic ends one request: the client gets a 500, and the log has the details.
func TestPanic(t *testing.T) {
	var log bytes.Buffer // slog writes one line at a time; it is read after the request has ended
	ended := make(chan string, 2)
	s := newStack(t, func(c *Config) {
		c.Requested = func(_, _, code string, _ time.Duration) { ended <- code }
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Board = boardThat(func() { panic("impossible: 7 is 8") })
	})
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	res := s.get("/v1/transactions/" + hash.String())
	wantProblem(t, "panic", res, http.StatusInternalServerError, internal)
	id := res.header.Get("X-Request-Id")
	if a, b := <-ended, <-ended; a != "200" || b != "500" {
		t.Errorf("counted as %s and %s", a, b)
	}
	for _, says := range []string{"impossible: 7 is 8", "boardThat", id, "level=ERROR"} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("the log does not say %s: %s", says, &log)
		}
	}
	if bytes.Contains(res.body, []byte("impossible")) {
		t.Errorf("the inside is told: %s", res.body)
	}
}

type boardThat func()

func (b boardThat) Find(context.Context, chain.ID, []chain.Hash) ([]tx.Work, error) {
	b()
	return nil, nil
}

// Each request is counted by its route's template, never by text from the client.
func TestRequestsAreCounted(t *testing.T) {
	counted := make(chan string, 10)
	s := newStack(t, func(c *Config) {
		c.Requested = func(route, method, code string, took time.Duration) {
			counted <- fmt.Sprintf("%s %s %s %v", method, route, code, took >= 0)
		}
	})
	for _, tt := range []struct{ request, want string }{
		{"GET /v1/transactions/0x12 HTTP/1.1", "GET /v1/transactions/{hash} 400 true"},
		{"GET /v1/transactions HTTP/1.1", "GET /v1/transactions 200 true"},
		{"GET /anything/else HTTP/1.1", "GET none 404 true"},
		{"BREW /livez HTTP/1.1", "other /livez 405 true"},
		{"HEAD /livez HTTP/1.1", "HEAD /livez 200 true"},
	} {
		s.raw(tt.request+"\r\nHost: a\r\nConnection: close\r\n\r\n", patience)
		if got := <-counted; got != tt.want {
			t.Errorf("%s: counted as %s", tt.request, got)
		}
	}
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"short cursor key": func(c *Config) { c.CursorKey = c.CursorKey[1:] },
		"no body limit":    func(c *Config) { c.Limits.BodyBytes = 0 },
		"no tail":          func(c *Config) { c.Tail = nil },
		"no time to work":  func(c *Config) { c.Limits.WorkTimeout = 0 },
		"no streams":       func(c *Config) { c.Limits.Streams = 0 },
	} {
		c := Config{
			Config: rest.Config{CursorKey: make([]byte, rest.CursorKeyBytes), Limits: rest.DefaultLimits()},
			Tail:   tail.New(nil, tx.Codec(), slog.New(slog.DiscardHandler)),
		}
		change(&c)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			New(c)
		}()
	}
}
