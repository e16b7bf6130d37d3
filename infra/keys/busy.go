package keys

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/retryafter"
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

// busy reads how long an answer asks to wait.
func busy(status int, header http.Header) *Busy {
	return &Busy{Status: status, After: min(retryafter.Of(header), MaxRetryAfter)}
}
