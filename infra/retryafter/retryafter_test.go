package retryafter

import (
	"net/http"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:37 GMT"
	for _, c := range []struct {
		text, date string
		want       time.Duration
	}{
		{"", date, 0}, {"7", "", 7 * time.Second}, {"0", "", 0}, {"-7", "", 0}, {"7.5", "", 0}, {"soon", date, 0},
		{"2147483647", "", 2147483647 * time.Second}, {"2147483648", "", 0}, {"99999999999999999999", "", 0},
		{"Sun, 06 Nov 1994 08:50:37 GMT", date, time.Minute},
		{"Sunday, 06-Nov-94 08:50:37 GMT", date, time.Minute},
		{"Sun, 06 Nov 1994 08:48:37 GMT", date, 0},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "", 0},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "today", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", date, 1<<63 - 1},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.text)
		h.Set("Date", c.date)
		if got := Of(h); got != c.want {
			t.Errorf("%q at %q: %s, want %s", c.text, c.date, got, c.want)
		}
	}
}
