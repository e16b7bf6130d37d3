package rlp

import "github.com/tempo-watchtower/watchtower/domain/chain"

// Access is one entry of an access list (EIP-2930) in JSON-RPC form.
type Access struct {
	Address     chain.Address `json:"address"`
	StorageKeys []chain.Hash  `json:"storageKeys"`
}

// Accesses reads an access list with its contents; [List.AccessList] only counts them.
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
