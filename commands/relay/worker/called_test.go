package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Called lanes check for intents, and so does a lane that has not said yet which one it is.
func TestCalledLanesCheck(t *testing.T) {
	id := func(key byte) chain.Sequence {
		return chain.Sequence{Sender: chain.Address{1}, Key: chain.NonceKey{31: key}}
	}
	n := &News{}
	boxes := map[string]*inbox{"one": n.open(), "two": n.open(), "new": n.open()}
	n.tellPart(boxes["one"], part{told: true, sender: id(1).Sender, key: id(1).Key})
	n.tellPart(boxes["two"], part{told: true, sender: id(2).Sender, key: id(2).Key})
	for name, b := range boxes {
		if _, claim, _ := b.empty(); !claim {
			t.Errorf("%s does not check at first", name)
		}
	}
	check := func(what string, want map[string]bool) {
		t.Helper()
		for name, b := range boxes {
			if _, claim, _ := b.empty(); claim != want[name] {
				t.Errorf("%s: lane %s checks: %t", what, name, claim)
			}
		}
	}
	n.Call(nil)
	check("nobody is called", nil)
	n.Call([]chain.Sequence{id(1), id(3)})
	check("one is called", map[string]bool{"one": true, "new": true})
}
