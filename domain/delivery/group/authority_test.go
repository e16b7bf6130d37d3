package group_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
)

// The digests equal those computed by viem 2.57.1 (hashTypedData).
func TestWishDigest(t *testing.T) {
	sender, err := chain.ParseAddress("0x5657118A2412d505c12C06F80720b3145e017A35")
	if err != nil {
		t.Fatal(err)
	}
	id, err := chain.ParseGroupID("0xd715028283f5d21b334d705c63d765eb")
	if err != nil {
		t.Fatal(err)
	}
	base := group.Wish{ID: group.ID{Chain: 42431, Sender: sender, Group: id}, Deployment: "payroll-eu", Expires: 1_800_000_000}
	edge := group.Wish{ID: group.ID{Chain: 4217, Sender: chain.Address{19: 0xff}, Group: chain.GroupID{15: 1}}, Expires: 1<<64 - 1}
	for want, wish := range map[string]group.Wish{
		"0xdd818ee1605dc332d596f8a27ef51369c4dd6b3e72c174bc0b854aee2e88fa07": base,
		"0xc82e3c514f8099ad4b213df6a1aa16fbe36b4a3f497406d906275d43359459ae": edge,
	} {
		if got := wish.Digest().String(); got != want {
			t.Errorf("%+v: %s, want %s", wish, got, want)
		}
	}
	// Every field changes the digest.
	seen := map[chain.Hash]bool{base.Digest(): true}
	for what, change := range map[string]func(*group.Wish){
		"chain":      func(w *group.Wish) { w.Chain++ },
		"sender":     func(w *group.Wish) { w.Sender[0]++ },
		"group":      func(w *group.Wish) { w.Group[15]++ },
		"deployment": func(w *group.Wish) { w.Deployment = "payroll-us" },
		"expiry":     func(w *group.Wish) { w.Expires++ },
	} {
		other := base
		if change(&other); seen[other.Digest()] {
			t.Errorf("another %s has the same digest", what)
		}
		seen[other.Digest()] = true
	}
}
