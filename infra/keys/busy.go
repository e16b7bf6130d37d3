package keys

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/retryafter"
)

// MaxRetryAfter is the longest wait that a remote signer can ask for: a wrong header must not
// stop an account for a day.
const MaxRetryAfter = time.Minute

// Busy is a remote signer's answer 429 or 5xx, without a signature. The request may be retried
// later.
type Busy struct {
	Status int           // HTTP status
	After  time.Duration // pause to wait, at most [MaxRetryAfter]; 0 if not given
}

func (b *Busy) Error() string {
	if b.After > 0 {
		return fmt.Sprintf("the remote signer responded %d and requests a pause of %s", b.Status, b.After)
	}
	return fmt.Sprintf("the remote signer responded %d", b.Status)
}

// RetryAfter is the pause before the next request; 0 if not given.
func (b *Busy) RetryAfter() time.Duration { return b.After }

// busy reads the pause from an answer.
func busy(status int, header http.Header) *Busy {
	return &Busy{Status: status, After: min(retryafter.Of(header), MaxRetryAfter)}
}
