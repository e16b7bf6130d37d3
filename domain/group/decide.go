package group

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// authoritiesMax bounds how many unexpired authorities a group remembers.
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
		if _, member := s.Member(m.Hash); !member && !met[m.Hash] {
			met[m.Hash], events = true, append(events, m)
		}
	}
	return events, nil
}

func (s State) cancel(c Cancel) ([]Event, error) {
	seconds := uint64(max(c.At.Unix(), 0))
	if c.By.Form != FormTyped {
		if s.Canceled == s.Members {
			return nil, nil
		}
		return []Event{Canceled{s.Members, c.By, c.At}}, nil
	}
	// A typed authority counts once: shown again after it was recorded, it must
	// not reach the members that joined since.
	_, shown := s.Shown[c.By.Digest]
	switch {
	case shown:
		return nil, nil
	case c.By.Expires <= seconds:
		return nil, ErrExpired.Because("it counted until %d, it is %d", c.By.Expires, seconds)
	case len(s.shownAt(seconds)) >= authoritiesMax:
		return nil, ErrShownOften.Because("%d have been shown that have not expired", authoritiesMax)
	}
	return []Event{Canceled{s.Members, c.By, c.At}}, nil
}
