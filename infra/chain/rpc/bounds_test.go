package rpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestReadBodiesAreBounded(t *testing.T) {
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	p := open(t, func(c *Config) { c.CallTimeout = 20 * time.Second }, serve(t, g))
	abandoned := make(chan struct{})
	g.misbehave("latest", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		junk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(junk); err != nil {
				close(abandoned)
				return
			}
		}
	})
	if _, err := p.Reader().Head(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 33554432 bytes") {
		t.Errorf("error %v", err)
	}
	<-abandoned
}

// Large replies are read a few at a time, and each is read whole.
func TestLargeRepliesTakeTurns(t *testing.T) {
	c := newClient("a", &url.URL{Scheme: "http", Host: "a"}, nil, 1)
	for _, test := range []struct{ size, limit, want int64 }{
		{maxSmallReply, maxSmallReply, maxSmallReply}, {maxSmallReply + 5, maxSmallReply, maxSmallReply + 1},
		{maxSmallReply + 1, maxBlockReply, maxSmallReply + 1}, {maxBlockReply + 5, maxBlockReply, maxBlockReply + 1},
	} {
		got, err := c.read(t.Context(), io.LimitReader(zeros{}, test.size), test.limit)
		if err != nil || int64(len(got)) != test.want {
			t.Errorf("%d bytes, limit %d: %d, %v", test.size, test.limit, len(got), err)
		}
	}
	for range maxLarge {
		c.large <- struct{}{} // others are being read
	}
	if _, err := c.read(t.Context(), io.LimitReader(zeros{}, maxSmallReply), maxBlockReply); err != nil {
		t.Errorf("a small reply waited: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.read(ctx, io.LimitReader(zeros{}, maxSmallReply+1), maxBlockReply); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a large reply did not wait: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
