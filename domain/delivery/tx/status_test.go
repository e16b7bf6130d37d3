package tx

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Clients compare these strings; no other status exists.
func TestStatusNames(t *testing.T) {
	want := []Status{"queued", "broadcasting", "retry_scheduled", "executed", "stale_by_nonce", "expired", "invalid", "canceled_locally"}
	if !slices.Equal(Statuses(), want) {
		t.Errorf("statuses %q", Statuses())
	}
	rapid.Check(t, func(t *rapid.T) {
		var s State
		attempt := 1
		for range rapid.IntRange(1, 30).Draw(t, "commands") {
			c := drawCommand(t, attempt)
			if r, ok := c.(Report); ok {
				attempt = r.Attempt + 1
			}
			events, err := s.Decide(c)
			if err != nil {
				continue // a refusal
			}
			for _, e := range events {
				s = s.Evolve(e)
			}
			if s.Status != StatusAbsent && !slices.Contains(want, s.Status) {
				t.Fatalf("after %T: %q", c, s.Status)
			}
		}
	})
}

// For every outcome, attempts continue to the end of the window. The first ones are 250 to 500 ms
// apart, later ones at most 5 s (15 s once a node has the bytes), and the last one is at most
// that long before the end.
func TestAttemptsReachTheEnd(t *testing.T) {
	s := DefaultSchedule()
	rapid.Check(t, func(t *rapid.T) {
		hash := chain.Keccak(rapid.SliceOf(rapid.Byte()).Draw(t, "hash"))
		length := time.Duration(rapid.IntRange(1, 3*60*60).Draw(t, "window")) * time.Second
		end := epoch.Add(length)
		outcome := func(n int) Outcome {
			if rapid.IntRange(0, 9).Draw(t, "taken") == 0 {
				return Outcome{Class: Taken}
			}
			cause := rapid.SampledFrom([]Cause{"", Funds, Fee, PoolFull, RateLimited, NonceTooLow, NonceTooHigh, Unreachable}).Draw(t, "cause")
			return Outcome{Class: rapid.SampledFrom([]Class{Retry, Unknown}).Draw(t, "class"), Cause: cause}
		}
		last, n := epoch, 0
		for at := epoch; at.Before(end); n++ {
			o := outcome(n)
			next := s.Next(hash, n+1, o, at, uint64(end.Unix())) //nolint:gosec // after 1970
			pause, most := next.Sub(at), 5*time.Second
			if o.Class == Taken && end.Sub(at) >= s.ExpirySoonWindow {
				most = 15 * time.Second
			}
			if pause <= 0 || pause > most {
				t.Fatalf("%v after attempt %d, %v before the end", pause, n+1, end.Sub(at))
			}
			plain := o.Class != Taken && o.Cause != RateLimited && o.Cause != NonceTooHigh
			if n < 3 && plain && (pause < 250*time.Millisecond || pause > 500*time.Millisecond) && next.Before(end) {
				t.Fatalf("%v after attempt %d", pause, n+1)
			}
			last, at = at, next
		}
		if end.Sub(last) > 5*time.Second {
			t.Fatalf("the last of %d attempts is %v before the end", n, end.Sub(last))
		}
	})
}
