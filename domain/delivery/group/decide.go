package group

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// authoritiesMax bounds the unexpired typed authorities that a group remembers. It also remembers
// one for the group's id, whose digest never changes.
const authoritiesMax = 256

func (s State) join(c Join) ([]Event, error) {
	if len(c.Members) == 0 || len(c.Members) > JoinMax {
		panic(fmt.Sprintf("group: %d transactions join by one command", len(c.Members)))
	}
	key := c.Members[0].NonceKey
	if s.Members > 0 {
		key = s.NonceKey
	}
	var events []Event
	met := map[chain.Hash]bool{}
	for _, m := range c.Members {
		if m.NonceKey.Group() != m.Group || m.Chain == 0 || m.Hash.IsZero() || (m.AccessKey == nil) != (m.Confirmed == nil) {
			panic(fmt.Sprintf("group: %+v cannot be a member of any group", m))
		}
		if m.NonceKey != key {
			return nil, ErrNonceKey.Because("the group's nonce key is %s, the transaction's is %s", key, m.NonceKey)
		}
		if _, member := s.Member(m.Hash); !member && !met[m.Hash] && s.Members+len(events) < c.most() {
			met[m.Hash], events = true, append(events, m)
		}
	}
	return events, nil
}

func (s State) cancel(c Cancel) ([]Event, error) {
	seconds := uint64(max(c.At.Unix(), 0))
	// An authority counts once. Repeated after it was recorded, perhaps by another party who has
	// seen it, it must not cancel the members that joined since.
	_, shown := s.Shown[c.By.Digest]
	switch {
	case shown:
		return nil, nil
	case c.By.Form != FormTyped:
	case c.By.Expires <= seconds:
		return nil, ErrExpired.Because("it counted until %d, it is %d", c.By.Expires, seconds)
	case s.typedAt(seconds) >= authoritiesMax:
		return nil, ErrShownOften.Because("%d have been shown that have not expired", authoritiesMax)
	}
	return []Event{Canceled{s.Members, c.By, c.At}}, nil
}

// typedAt returns the number of typed authorities that have not expired at a time.
func (s State) typedAt(seconds uint64) (n int) {
	for _, a := range s.Shown {
		if a.Expires > seconds {
			n++
		}
	}
	return n
}
