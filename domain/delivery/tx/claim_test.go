package tx

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// claimed makes the transaction signed by an access key, with a group.
func claimed(a *Accepted) {
	a.Signature, a.AccessKey, a.Group = chain.Keychain, &chain.Address{2}, &chain.GroupID{3}
}

func doubt(reason string) DoubtGroup { return DoubtGroup{reason, blockAt(7, "main"), epoch} }

func TestClaimedGroup(t *testing.T) {
	confirm := ConfirmGroup{blockAt(8, "main"), epoch}
	grouped := func(a *Accepted) { a.Group = &chain.GroupID{3} }
	ungrouped := func(a *Accepted) { claimed(a); a.Group = nil }
	authorized := func(a *Accepted) { claimed(a); a.Authorized = true }
	for _, c := range []struct {
		name    string
		given   []Command
		events  int
		pending bool
		member  bool
		doubt   string
	}{
		{"signed by the sender", []Command{accept(grouped)}, 1, false, true, ""},
		{"claimed", []Command{accept(claimed)}, 1, true, false, ""},
		{"claimed without a group", []Command{accept(ungrouped), doubt("unknown"), confirm}, 3, false, false, ""},
		{"authorized in the same bytes", []Command{accept(authorized), doubt("unknown"), confirm}, 1, false, true, ""},
		{"nothing to confirm", []Command{accept(grouped), doubt("unknown"), confirm}, 1, false, true, ""},
		{"doubted", []Command{accept(claimed), doubt("unknown"), doubt("unknown")}, 2, true, false, "unknown"},
		{"doubted for another reason", []Command{accept(claimed), doubt("unknown"), doubt("revoked")}, 3, true, false, "revoked"},
		{"confirmed after a doubt", []Command{accept(claimed), doubt("unknown"), confirm, confirm}, 3, false, true, ""},
		{"doubted after it was confirmed", []Command{accept(claimed), confirm, doubt("revoked")}, 2, false, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, events := run(t, State{}, c.given...)
			if len(events) != c.events || s.GroupPending() != c.pending || (s.Group() != nil) != c.member || s.Doubt != c.doubt {
				t.Errorf("%d events, pending %v, group %v, doubt %q; want %+v", len(events), s.GroupPending(), s.Group(), s.Doubt, c)
			}
		})
	}
}

// A key that is granted and revoked repeatedly writes a short history.
func TestDoubtsAreBounded(t *testing.T) {
	s, _ := run(t, State{}, accept(claimed))
	recorded := 0
	for n := range 1000 {
		var events []Event
		s, events = run(t, s, doubt(fmt.Sprint("reason ", n%2)))
		recorded += len(events)
	}
	if recorded != doubtsMax {
		t.Errorf("%d doubts recorded", recorded)
	}
}
