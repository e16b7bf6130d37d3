package simulation

import (
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// judgedAlways are the promises with cases in some world of every kind: a promise without a case
// was not tested. Left out are promises that a world does not decide. Lateness of first attempts
// (P16) is measured. Read models are compared with a rebuild from the log (P19, and so P18).
// Access to the log (P20), worlds with and without Redis (P21), clocks (P26) and rate limits
// (P27) are judged by their effects.
func judgedAlways() []promises.Number {
	return []promises.Number{
		promises.P1, promises.P2, promises.P3, promises.P8, promises.P9, promises.P10, promises.P11, promises.P12, promises.P13, promises.P14,
		promises.P15, promises.P17, promises.P19, promises.P23, promises.P24, promises.P25, promises.P29, promises.P30, promises.P31,
	}
}

// judgedRelayed are the promises that only worlds with a relay half test.
func judgedRelayed() []promises.Number {
	return []promises.Number{
		promises.P4, promises.P5, promises.P6, promises.P7, promises.P22, promises.P28, promises.P32, promises.P33, promises.P34, promises.P35,
	}
}

// caseOf is a promise's key in [Report.Judged].
func caseOf(n promises.Number) string { return n.String() + " judged" }

// judged counts the cases of each promise.
func (j *judge) judged() map[string]int {
	cases := j.promises.Cases()
	cases.Merge(j.cases)
	if l := j.world.lanes; l != nil {
		for _, more := range []promises.Cases{l.nonces.Cases(), l.intents.Cases(), l.safeguards.Cases()} {
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
