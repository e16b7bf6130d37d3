package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// roundTrip is an http.RoundTripper made from a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Transport gets only requests that the guard allows, even for a name that was public before.
// The progress that it reports decides the meaning of an error.
func TestTransport(t *testing.T) {
	reset := errors.New("reset")
	address, asked, fires := "93.184.216.34", 0, func(*httptrace.ClientTrace) {}
	guard, err := NewGuard(Rules{Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) { return at(address)(ctx, name) }})
	must(t, err)
	s, err := New(Options{Guard: guard, Timeout: 30 * time.Second, Agent: "test", Now: time.Now, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked++
		fires(httptrace.ContextClientTrace(r.Context()))
		return nil, reset
	})})
	must(t, err)
	defer s.Close()
	for i, c := range []struct {
		address string
		fires   func(*httptrace.ClientTrace)
		want    notice.Outcome
		asked   int
	}{
		{"93.184.216.34", func(*httptrace.ClientTrace) {}, notice.Outcome{Class: notice.Failed, Cause: notice.Connect}, 1},
		{"93.184.216.34", func(c *httptrace.ClientTrace) { c.GotConn(httptrace.GotConnInfo{}) }, notice.Outcome{Class: notice.Unknown, Cause: notice.Cut}, 2},
		{"169.254.169.254", nil, notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}, 2},
		{"10.0.0.1", nil, notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}, 2},
	} {
		address, fires = c.address, c.fires
		got := s.Send(t.Context(), Endpoint{URL: "https://hooks.example.com/", Secrets: []Secret{newSecret(t)}}, Message{ID: "msg_1", Body: []byte("{}")})
		if diff := cmp.Diff(c.want, got); diff != "" || asked != c.asked {
			t.Errorf("%d: asked %d times: %s", i, asked, diff)
		}
	}
}
