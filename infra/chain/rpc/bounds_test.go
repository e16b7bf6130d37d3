package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestReadBodiesAreBounded(t *testing.T) {
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	p := open(t, func(c *Config) { c.CallTimeout = 20 * time.Second }, serve(t, g))
	abandoned := make(chan struct{})
	g.misbehave("latest", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		junk := bytes.Repeat([]byte("a"), 1<<20)
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"`))
		for {
			if _, err := w.Write(junk); err != nil {
				close(abandoned)
				return
			}
		}
	})
	_, err := p.ask(t.Context(), p.endpoints[0], 20*time.Second, maxBlockReply, call{"eth_getBlockByNumber", []any{"latest", false}})
	if err == nil || !strings.Contains(err.Error(), "larger than 33554432 bytes") {
		t.Errorf("error %v", err)
	}
	<-abandoned
}

// Few large replies are read at the same time, and each is read whole.
func TestLargeRepliesTakeTurns(t *testing.T) {
	c := newClient("a", &url.URL{Scheme: "http", Host: "a"}, nil, 1, nil)
	for _, test := range []struct {
		size, limit int64
		want        error
	}{
		{maxSmallReply, maxSmallReply, nil}, {maxSmallReply + 1, maxSmallReply, tooLarge(maxSmallReply)},
		{maxSmallReply + 1, maxBlockReply, nil}, {5*piece + 3, maxBlockReply, nil}, {maxBlockReply, maxBlockReply, nil},
		{maxBlockReply + 1, maxBlockReply, tooLarge(maxBlockReply)}, {10 * maxBlockReply, maxBlockReply, tooLarge(maxBlockReply)},
	} {
		for _, length := range []int64{-1, test.size} {
			if length > test.limit {
				continue // it is refused before it is read
			}
			got, err := c.read(t.Context(), text(test.size), length, test.limit)
			if !errors.Is(err, test.want) || err == nil && (int64(len(got)) != test.size || got[len(got)-1] != '"') {
				t.Errorf("%d bytes, said to be %d, limit %d: %d, %v", test.size, length, test.limit, len(got), err)
			}
		}
	}
	for range maxLarge {
		c.large <- struct{}{} // other replies are being read
	}
	if _, err := c.read(t.Context(), text(maxSmallReply), -1, maxBlockReply); err != nil {
		t.Errorf("a small reply waited: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.read(ctx, text(maxSmallReply+1), -1, maxBlockReply); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a large reply did not wait: %v", err)
	}
}

// A large reply takes little more memory than its bytes. A reply without end takes no more than
// the part that is read. Of a body that is not a reply, little is read.
func TestLargeRepliesCostWhatTheyHold(t *testing.T) {
	const some = 12 << 20 // for small allocations, and for the prelude
	c := newClient("a", &url.URL{Scheme: "http", Host: "a"}, nil, 1, nil)
	for name, test := range map[string]struct {
		body         io.Reader
		length, most int64
		want         error
	}{
		"whole, of known length": {text(maxBlockReply), maxBlockReply, maxBlockReply + some, nil},
		"whole":                  {text(maxBlockReply), -1, 2*maxBlockReply + some, nil},
		"without end":            {text(1 << 40), -1, maxBlockReply + some, tooLarge(maxBlockReply)},
		"values without end":     {repeated("[1,2,3],"), -1, some, errNotJSON},
		"two values":             {io.MultiReader(strings.NewReader("{}"), text(maxBlockReply)), -1, some, errNotJSON},
		"spaces without end":     {repeated(" "), -1, some, errNotJSON},
		"a page without end":     {repeated("<html>"), -1, some, errNotJSON},
		"cut off":                {io.MultiReader(io.LimitReader(text(1<<40), 3*piece+5), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, some, io.ErrUnexpectedEOF},
		"less than it said":      {text(2 << 20), maxBlockReply, maxBlockReply + some, io.ErrUnexpectedEOF},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.read(t.Context(), test.body, test.length, maxBlockReply)
		runtime.ReadMemStats(&after)
		if spent := int64(after.TotalAlloc - before.TotalAlloc); !errors.Is(err, test.want) || spent > test.most { //nolint:gosec // little
			t.Errorf("%s: %d bytes of memory, at most %d; error %v, want %v", name, spent, test.most, err, test.want)
		}
	}
}

// text is a JSON string of size bytes.
func text(size int64) io.Reader {
	return io.MultiReader(strings.NewReader(`"`), io.LimitReader(repeated("a"), size-2), strings.NewReader(`"`))
}

// repeated returns the words without end.
func repeated(words string) io.Reader { return &echo{said: []byte(strings.Repeat(words, 4096))} }

type echo struct {
	said []byte
	at   int
}

func (e *echo) Read(p []byte) (int, error) {
	n := copy(p, e.said[e.at:])
	e.at = (e.at + n) % len(e.said)
	return n, nil
}

// Replies to clients' calls are decoded one at a time if they are not small. Our own reads do not
// wait for them.
func TestClientsRepliesAreDecodedInTurn(t *testing.T) {
	result := strings.Repeat("ab", sortedAlone)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked request
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		size := len(result)
		if asked.Method == "small" {
			size = 10
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":"0x%s"}`, asked.ID, result[:size]) //nolint:errcheck // the client tells
	}))
	defer node.Close()
	u, err := url.Parse(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient("a", u, nil, 4, nil)
	defer c.http.CloseIdleConnections()
	ask := func(ctx context.Context, method string) error {
		_, err := c.do(ctx, maxBlockReply, call{method: method})
		return err
	}
	theirs := ofClient(t.Context(), "ann")
	if err := ask(theirs, "large"); err != nil {
		t.Error(err)
	}
	c.sort <- struct{}{} // another reply is being decoded
	if err := ask(theirs, "small"); err != nil {
		t.Errorf("a small reply: %v", err)
	}
	if err := ask(t.Context(), "large"); err != nil {
		t.Errorf("our own read: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- ask(theirs, "large") }()
	short, cancel := context.WithTimeout(theirs, 200*time.Millisecond)
	defer cancel()
	if err := ask(short, "large"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a large reply did not wait: %v", err)
	}
	<-c.sort
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
