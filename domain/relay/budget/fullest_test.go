package budget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFullest(t *testing.T) {
	part := func(p float64) *float64 { return &p }
	of := func(kind AccountKind) Account { return Account{Kind: kind} }
	spend := reserve(one, costs(11, 30, 5), costs(21, 10, 0))
	for name, c := range map[string]struct {
		commands []Command
		day      Day
		want     map[AccountKind]Share
	}{
		"no limit":        {[]Command{spend}, today, map[AccountKind]Share{}},
		"nothing is used": {[]Command{limit(whole, amount(100), nil), limit(of(EachClient), nil, amount(7))}, today, map[AccountKind]Share{OnChain: {Fee: part(0)}, OfClient: {Value: part(0)}}},
		"nothing may be":  {[]Command{limit(whole, amount(0), nil)}, today, map[AccountKind]Share{OnChain: {Fee: part(1)}}},
		"the chain's":     {[]Command{limit(whole, amount(80), amount(20)), spend}, today, map[AccountKind]Share{OnChain: {part(.5), part(.25)}, OfClient: {}, OfSigner: {}}},
		"another day":     {[]Command{limit(whole, amount(80), amount(20)), spend}, today + 1, map[AccountKind]Share{OnChain: {part(0), part(0)}}},
		"of each client the one who used most": {
			[]Command{limit(of(EachClient), amount(60), nil), limit(Account{Kind: OfClient, Client: "client2"}, amount(100), nil), spend}, today,
			map[AccountKind]Share{OnChain: {}, OfClient: {Fee: part(.5)}, OfSigner: {}},
		},
		"a client's own limit": {
			[]Command{limit(of(EachClient), amount(60), nil), limit(Account{Kind: OfClient, Client: "client2"}, amount(12), nil), spend}, today,
			map[AccountKind]Share{OnChain: {}, OfClient: {Fee: part(10. / 12)}, OfSigner: {}},
		},
		"each signer": {
			[]Command{limit(of(EachSigner), amount(50), nil), spend, reserve(two, costs(31, 45, 0))}, today,
			map[AccountKind]Share{OnChain: {}, OfClient: {}, OfSigner: {Fee: part(.9)}},
		},
	} {
		s, _ := run(t, c.commands...)
		if diff := cmp.Diff(c.want, s.Fullest(c.day)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
