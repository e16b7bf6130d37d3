package delivery

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tuned is a client of an event stream.
type tuned struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Reader
	cancel func()
	last   string // the last id, as an EventSource keeps it
}

// tune opens a stream; any other answer fails the test.
func (s *stack) tune(query string, header ...string) *tuned {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/v1/events?"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // close does it
	if err != nil {
		s.t.Fatal(err)
	}
	c := &tuned{t: s.t, res: res, lines: bufio.NewReader(res.Body), cancel: cancel}
	s.t.Cleanup(c.close)
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("GET /v1/events?%s answered %d: %s", query, res.StatusCode, body)
	}
	return c
}

func (c *tuned) close() {
	c.cancel()
	_ = c.res.Body.Close()
}

// next returns the next event with its id; io.EOF after the end of the stream. It parses by the
// HTML standard, section 9.2.6.
func (c *tuned) next() (shown object, err error) {
	var data []byte
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && data != nil:
			if err := json.Unmarshal(data, &shown); err != nil {
				return nil, fmt.Errorf("%w: %s", err, data)
			}
			if at := fmt.Sprintf("%.0f", shown["position"]); at != c.last {
				return nil, fmt.Errorf("the id is %s, the position %s", c.last, at)
			}
			return shown, checkFollowed(c.t, data)
		case field == "id":
			c.last = value
		case field == "data":
			data = append(data, value...)
		}
	}
}

// checkFollowed checks an event against the contract.
func checkFollowed(t testing.TB, data []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	doc := contract(t)
	if faults := conforms(t, doc, at(t, doc, "components", "schemas", "FollowedEvent"), v, ""); len(faults) > 0 {
		return fmt.Errorf("%s: %s", data, strings.Join(faults, "; "))
	}
	return nil
}

// wantNext reads events and checks their names.
func (c *tuned) wantNext(names ...string) (all []object) {
	c.t.Helper()
	for _, name := range names {
		shown, err := c.next()
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", name, err)
		}
		if shown["name"] != name {
			c.t.Fatalf("got %v, want %s", shown, name)
		}
		all = append(all, shown)
	}
	return all
}
