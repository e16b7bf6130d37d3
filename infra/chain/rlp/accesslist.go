package rlp

import "github.com/tempo-watchtower/watchtower/domain/chain"

// Access is one entry of an access list (EIP-2930), as JSON-RPC shows it.
type Access struct {
	Address     chain.Address `json:"address"`
	StorageKeys []chain.Hash  `json:"storageKeys"`
}

// Accesses reads what [List.AccessList] counts.
func (l *List) Accesses(field string) []Access {
	all := []Access{}
	for list := l.List(field); list.More(); {
		entry := list.List(field)
		a := Access{Address: entry.Address(field), StorageKeys: []chain.Hash{}}
		for slots := entry.List(field); slots.More(); {
			var slot chain.Hash
			slots.fixed(field, slot[:])
			a.StorageKeys = append(a.StorageKeys, slot)
		}
		entry.End(field)
		all = append(all, a)
	}
	return all
}
