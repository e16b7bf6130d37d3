package delivery

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// passes opens a stream, and returns how far it has come when it has waited for two heartbeats.
func (s *stack) passes(after int, filter, token string) (events int) {
	s.t.Helper()
	c := s.tune("after="+strconv.Itoa(after)+filter, "X-API-Key", token)
	defer c.close()
	c.mark()
	c.mark()
	return int(c.mark()) - after
}

// A stream that closes leaves its debt: the client's next stream reads nothing of the log, and
// looks no owner up, before that is paid. A debt is not paid by one unit that comes back.
func TestDebtOfStreamsIsKept(t *testing.T) {
	const page, burst, others = 10_000, 20, 1000
	for name, tt := range map[string]struct {
		fill        func(s *stack)
		filter      string
		first, next int // where streams begin
		most        int // events that all of them pass, in all
	}{
		"scans":    {func(s *stack) { s.fill(3 * page) }, "&name=nothing.", 10, 0, page + burst*rest.ScanUnit},
		"look-ups": {func(s *stack) { s.strangers(others) }, "&name=tx.", others, followBatch / 2, followBatch + burst},
	} {
		t.Run(name, func(t *testing.T) {
			keys := newRing(t)
			s := newStack(t, keys.config, func(c *Config) {
				c.Rates.Key = rest.Rate{PerSecond: 100, Burst: burst}
				c.Limits.StreamSilence = 5 * time.Millisecond
			})
			tt.fill(s)
			token, passed := keys.Scoped(access.Read), 0
			for i := range 2 * burst {
				if i >= burst/2 { // a unit comes back for each request, and no more
					s.elapse(time.Second / 100)
				}
				passed += s.passes(tt.first+i%(burst/2)*tt.next, tt.filter, token)
			}
			if passed == 0 || passed > tt.most {
				t.Errorf("streams passed %d events for a burst of %d units, want at most %d", passed, burst, tt.most)
			}
			c := s.tune("after="+strconv.Itoa(tt.first)+tt.filter, "X-API-Key", token)
			for int(c.mark()) == tt.first { // it reads on when the debt is paid
				s.elapse(time.Second / 10)
			}
		})
	}
}

// A stream that gets no place for long begins all the same, and says how far it is.
func TestStreamWithoutAPlaceBegins(t *testing.T) {
	s := newStack(t, func(c *Config) {
		c.Limits.StreamSilence = 5 * time.Millisecond
		c.Scans = rest.NewPlaces(0, 1, 0)
	})
	s.fill(100)
	c := s.tune("after=10&name=nothing.")
	for range 5 {
		if at := c.mark(); at != 10 {
			t.Fatalf("the stream is at %d", at)
		}
	}
	if res, err := s.send(http.MethodHead, "/v1/events?after=10", nil); err != nil || res.status != http.StatusOK {
		t.Errorf("HEAD: %d, %v", res.status, err)
	}
}
