package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// door is a proxy between a relayer and a node.
type door struct {
	node   string
	server *httptest.Server
	how    atomic.Int32
	lost   atomic.Int32 // requests without a delivered answer
}

// The states of a door.
const (
	open = iota
	shut // nothing passes
	deaf // requests pass, answers do not
	dark // requests that estimate gas do not pass
)

// throughDoor makes relayers started later reach the node through a door.
func (w *world) throughDoor(t *testing.T) *door {
	t.Helper()
	d := &door{node: w.node.URL()}
	d.server = httptest.NewServer(d)
	t.Cleanup(d.server.Close)
	w.flags = append(without(w.flags, "--chains="), fmt.Sprintf("--chains=%d=%s", w.id, d.server.URL))
	return d
}

func (d *door) set(how int32) {
	d.lost.Store(0)
	d.how.Store(how)
}

func (d *door) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	how := d.how.Load()
	body, err := io.ReadAll(r.Body)
	var status int
	var answer []byte
	if how == dark && !bytes.Contains(body, []byte("eth_estimateGas")) {
		how = open
	}
	if err == nil && how != shut && how != dark {
		status, answer, err = forward(r, d.node, body)
	}
	if err != nil || how != open {
		d.lost.Add(1)
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(answer) // a caller that has gone misses it
}

func forward(r *http.Request, url string, body []byte) (status int, answer []byte, err error) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	ask.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(ask)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
