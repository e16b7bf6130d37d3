package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// requests are HTTP requests that submit payments, each payments per request.
func requests(payments []rig.Payment, each int) (all [][]byte) {
	for some := range slices.Chunk(payments, each) {
		all = append(all, request(some))
	}
	return all
}

func request(payments []rig.Payment) []byte {
	body := fmt.Appendf(nil, `{"chainId":%d,"transactions":[`, rig.TempoChain)
	for i, p := range payments {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `"0x`...)
		body = hex.AppendEncode(body, p.Raw)
		body = append(body, '"')
	}
	body = append(body, "]}"...)
	head := fmt.Appendf(nil, "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	return append(head, body...)
}

// line is one connection to the service. It only writes and reads: the generator shares the
// processors with the measured service.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(ctx context.Context, url string) (*line, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

// hurry ends the wait for a response.
func (l *line) hurry() { _ = l.conn.SetDeadline(time.Now()) } // on a closed connection there is no wait

// post sends one request and requires that each of its transactions is accepted.
func (l *line) post(request []byte) error {
	each := bytes.Count(request, []byte(`"0x`))
	if _, err := l.conn.Write(request); err != nil {
		return err
	}
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close() //nolint:errcheck,gosec // it was read to its end
	if err != nil {
		return err
	}
	if taken := bytes.Count(body, []byte(`"ok":true`)); res.StatusCode != http.StatusOK || taken != each {
		return fmt.Errorf("%s, %d of %d taken: %.300s", res.Status, taken, each, body)
	}
	return nil
}

// postAll sends requests from several clients at once, each waiting for its response, and
// returns the time of each request.
func postAll(ctx context.Context, url string, requests [][]byte, clients int) ([]time.Duration, error) {
	return postTo(ctx, []string{url}, requests, clients)
}

// postTo is postAll to several replicas; each client keeps to one of them.
func postTo(ctx context.Context, urls []string, requests [][]byte, clients int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make([]*line, clients)
	for i := range lines {
		l, err := dial(ctx, urls[i%len(urls)])
		if err != nil {
			return nil, err
		}
		defer l.conn.Close() //nolint:errcheck // nothing is under way
		defer context.AfterFunc(ctx, l.hurry)()
		lines[i] = l
	}
	took := make([]time.Duration, len(requests))
	var next atomic.Int64
	var posting sync.WaitGroup
	for _, l := range lines {
		posting.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(requests) || ctx.Err() != nil {
					return
				}
				began := time.Now()
				if err := l.post(requests[i]); err != nil {
					cancel(err)
					return
				}
				took[i] = time.Since(began)
			}
		})
	}
	posting.Wait()
	return took, context.Cause(ctx)
}
