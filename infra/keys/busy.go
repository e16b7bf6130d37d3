package keys

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter is the longest wait that a remote signer can ask for: a wrong header
// must not stop an account for a day.
const MaxRetryAfter = time.Minute

// Busy is a remote signer's wish to be asked later: it answered 429 or 5xx, and no
// signature came of it.
type Busy struct {
	Status int           // of HTTP
	After  time.Duration // to wait, at most [MaxRetryAfter]; 0 when it did not say
}

func (b *Busy) Error() string {
	if b.After > 0 {
		return fmt.Sprintf("the remote signer answered %d, and asks to be left alone for %s", b.Status, b.After)
	}
	return fmt.Sprintf("the remote signer answered %d", b.Status)
}

// RetryAfter is how long to wait before asking again; 0 when it was not said.
func (b *Busy) RetryAfter() time.Duration { return b.After }

// busy reads an answer's Retry-After: seconds, or a date (RFC 9110, section 10.2.3),
// which is compared with the answer's own Date and so needs no clock.
func busy(status int, header http.Header) *Busy {
	text := header.Get("Retry-After")
	after := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if until, err := http.ParseTime(text); err == nil {
		if now, err := http.ParseTime(header.Get("Date")); err == nil {
			after = until.Sub(now)
		}
	}
	return &Busy{Status: status, After: min(max(after, 0), MaxRetryAfter)}
}
