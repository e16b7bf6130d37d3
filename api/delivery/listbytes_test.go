package delivery

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// A list, and a group, pay for the bytes of their answer, after the fact.
func TestListsPayForBytes(t *testing.T) {
	const burst, many = 1000, 190
	s := grouped(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst} })
	for n := range uint64(many) {
		s.submit(payment(payroll(0), n))
		s.submit(payment(payroll(byte(n)+1), 0))
		s.elapse(time.Minute)
	}
	for target, rows := range map[string]int{ // units of the rows that the answer is about
		"/v1/transactions?limit=1000&sender=" + owner.String():                1,
		groupsPath(owner) + "?limit=1000":                                     3,
		groupsPath(owner) + "/" + payroll(0).Group().String() + "?limit=1000": 2,
	} {
		s.elapse(time.Hour)
		res := s.get(target)
		units := (len(res.body) + bodyUnit - 1) / bodyUnit
		if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units, units); res.status != http.StatusOK || units <= rows || got != want {
			t.Errorf("%s: answered %d with %d bytes and RateLimit %s, want %s", target, res.status, len(res.body), got, want)
		}
	}
}
