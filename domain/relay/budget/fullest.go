package budget

import "github.com/tempo-watchtower/watchtower/domain/chain"

// Share is the used share of a limit: 0 is nothing, 1 all of it; nil: no limit.
type Share struct{ Fee, Value *float64 }

// Fullest returns, for each kind of account with a limit (chain, client, subject, signer), the
// highest used shares on a day. A limit of 0 counts as fully used.
func (s State) Fullest(day Day) map[AccountKind]Share {
	all := map[AccountKind]Share{}
	see := func(kind AccountKind, l Limit, used Sum) {
		share := all[kind]
		share.Fee, share.Value = fuller(share.Fee, l.Fee, used.Fee), fuller(share.Value, l.Value, used.Value)
		all[kind] = share
	}
	each := map[AccountKind]AccountKind{EachClient: OfClient, EachSubject: OfSubject, EachSigner: OfSigner}
	for a, l := range s.Limits {
		if kind, every := each[a.Kind]; every {
			see(kind, l, Sum{})
		} else {
			see(a.Kind, l, s.Used(day, a))
		}
	}
	if day > s.Day || len(s.Limits) == 0 {
		return all // nothing is used
	}
	for a, used := range s.used.all() {
		see(a.Kind, s.Limit(a), used)
	}
	return all
}

// fuller returns the greater of share and the used share of a limit.
func fuller(share *float64, limit *chain.Amount, used chain.Amount) *float64 {
	if limit == nil {
		return share
	}
	part := 1.0
	if !limit.IsZero() {
		part = used.Int().Float64() / limit.Int().Float64()
	}
	if share != nil && *share >= part {
		return share
	}
	return &part
}
