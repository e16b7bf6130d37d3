package tx

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// An account is a chain, a fee payer, an access key and a client.
func TestAccountOf(t *testing.T) {
	payer, key, other := chain.Address{2}, chain.Address{3}, chain.Address{4}
	given := Accepted{Chain: 1, Sender: chain.Address{1}, Nonce: 5, Client: "one"}
	for name, c := range map[string]struct {
		change func(a *Accepted)
		same   bool
	}{
		"another nonce":            {func(a *Accepted) { a.Nonce++ }, true},
		"another nonce key":        {func(a *Accepted) { a.NonceKey[31]++ }, true},
		"another sender":           {func(a *Accepted) { a.Sender = other }, false},
		"another chain":            {func(a *Accepted) { a.Chain++ }, false},
		"a claim with another key": {func(a *Accepted) { a.AccessKey = &key }, false},
		"somebody else pays":       {func(a *Accepted) { a.FeePayer = &payer }, false},
		"another client":           {func(a *Accepted) { a.Client = "another" }, false},
		"it says that it pays":     {func(a *Accepted) { a.FeePayer = &a.Sender }, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := given
			c.change(&changed)
			if same := AccountOf(changed) == AccountOf(given); same != c.same {
				t.Errorf("the same account: %v", same)
			}
		})
	}
	sponsored, alike := given, given
	sponsored.FeePayer, alike.FeePayer, alike.Sender = &payer, &payer, other
	if AccountOf(sponsored) != AccountOf(alike) {
		t.Error("who pays for two is two accounts")
	}
}
