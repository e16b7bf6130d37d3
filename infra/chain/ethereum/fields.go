package ethereum

import (
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// delegation is one authorization of EIP-7702 in JSON-RPC form.
type delegation struct {
	ChainID string        `json:"chainId"`
	Address chain.Address `json:"address"`
	Nonce   string        `json:"nonce"`
	YParity string        `json:"yParity"`
	R       string        `json:"r"`
	S       string        `json:"s"`
}

// Fields returns the fields of a signed transaction that [chain.Signed] does not keep, under
// the names and in the form of JSON-RPC: the signature, the access list, the authorizations.
// raw must be accepted by [Decode].
func Fields(raw []byte) (map[string]any, error) {
	if raw[0] >= legacyFirst {
		l := rlp.Read(raw)
		skip(&l, 6)
		v, r, s := l.Uint("v", 256), l.Uint("r", 256), l.Uint("s", 256)
		return map[string]any{"v": v.Hex(), "r": r.Hex(), "s": s.Hex()}, l.Err()
	}
	l := rlp.Read(raw[1:])
	before := 8 // chain id, nonce, two fees, gas, to, value, input
	if raw[0] == AccessList {
		before = 7
	}
	skip(&l, before)
	fields := map[string]any{"accessList": l.Accesses("access list")}
	if raw[0] == SetCode {
		fields["authorizationList"] = delegations(&l)
	}
	parity := l.Uint("y parity", 256).Hex()
	fields["v"], fields["yParity"] = parity, parity
	fields["r"], fields["s"] = l.Uint("r", 256).Hex(), l.Uint("s", 256).Hex()
	return fields, l.Err()
}

// skip skips n string items.
func skip(l *rlp.List, n int) {
	for range n {
		l.Bytes("field")
	}
}

func delegations(l *rlp.List) []delegation {
	all := []delegation{}
	for list := l.List("authorizations"); list.More(); {
		entry := list.List("authorization")
		number := func(field string) string { return entry.Uint(field, 256).Hex() }
		d := delegation{ChainID: number("chain id"), Address: entry.Address("address")}
		d.Nonce, d.YParity, d.R, d.S = number("nonce"), number("y parity"), number("r"), number("s")
		all = append(all, d)
	}
	return all
}
