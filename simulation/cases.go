package simulation

import (
	"github.com/tempo-watchtower/watchtower/domain/promise"
)

// judgedAlways are the promises with cases in some world of every kind: a promise without a case
// was not tested. Left out are promises that a world does not decide. Lateness of first attempts
// (P16) is measured. Read models are compared with a rebuild from the log (P19, and so P18).
// Access to the log (P20), worlds with and without Redis (P21), clocks (P26) and rate limits
// (P27) are judged by their effects.
func judgedAlways() []promise.Number {
	return []promise.Number{
		promise.P1, promise.P2, promise.P3, promise.P8, promise.P9, promise.P10, promise.P11, promise.P12, promise.P13, promise.P14,
		promise.P15, promise.P17, promise.P19, promise.P23, promise.P24, promise.P25, promise.P29, promise.P30, promise.P31,
	}
}

// judgedRelayed are the promises that only worlds with a relay half test.
func judgedRelayed() []promise.Number {
	return []promise.Number{
		promise.P4, promise.P5, promise.P6, promise.P7, promise.P22, promise.P28, promise.P32, promise.P33, promise.P34, promise.P35,
	}
}

// caseOf is a promise's key in [Report.Judged].
func caseOf(n promise.Number) string { return n.String() + " judged" }

// judged counts the cases of each promise.
func (j *judge) judged() map[string]int {
	cases := j.promises.Cases()
	cases.Merge(j.cases)
	if l := j.world.lanes; l != nil {
		for _, more := range []promise.Cases{l.nonces.Cases(), l.intents.Cases(), l.safeguards.Cases()} {
			cases.Merge(more)
		}
	}
	if h := j.world.hooks; h != nil {
		for _, r := range h.receivers {
			cases.Merge(r.consumer.Cases())
		}
	}
	if t := j.world.tenants; t != nil {
		cases.Merge(t.secrets.Cases())
	}
	all := map[string]int{}
	for n, count := range cases.Judged() {
		all[caseOf(n)] = int(count) //nolint:gosec // small
	}
	return all
}
