package delivery

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A client that is no longer admitted gets no more events, and its stream soon ends.
func TestFollowEndsWithTheKey(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Limits.StreamSilence = 20 * time.Millisecond })
	nobody := s.tune("") // no key exists yet
	s.submit(signed(t, newKey(t), testChain, 0))
	nobody.wantNext("tx.accepted.v1")

	submitter := keys.Scoped(access.Submit) // the first key
	token, id := keys.Create(access.Key{Scopes: []access.Scope{access.Read}})
	expiring, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, ExpiresAt: uint64(testTime.Unix()) + 60})
	revoked, expired := s.tune("", "X-API-Key", token), s.tune("", "X-API-Key", expiring)
	stays := s.tune("", "X-API-Key", keys.Scoped(access.Audit))
	keys.Handle(access.Revoke{ID: id, At: testTime})
	s.elapse(time.Minute)
	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, signed(t, newKey(t), testChain, 0)), "X-API-Key", submitter)
	if res.status != http.StatusOK {
		t.Fatal(res)
	}
	stays.wantNext("tx.accepted.v1")
	for what, c := range map[string]*tuned{"nobody's": nobody, "revoked": revoked, "expired": expired} {
		if shown, err := c.next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s stream: %v, %v", what, shown, err)
		}
	}
}

// A key bound to senders sees only the events of these senders, with any filter.
func TestFollowBoundKey(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) { c.Limits.StreamSilence = 20 * time.Millisecond })
	mine, theirs := newKey(t), newKey(t)
	me := chain.Address(crypto.PubkeyToAddress(mine.PublicKey))
	all := s.submit(signed(t, theirs, testChain, 0), signed(t, mine, testChain, 0))
	other, own := all[0], all[1]
	s.broadcast(other.TxHash)
	s.broadcast(own.TxHash)
	token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Senders: []chain.Address{me}})
	for query, want := range map[string]int{
		"":                              2,
		"sender=" + me.String():         2,
		"sender=" + other.Sender:        0,
		"hash=" + other.TxHash.String(): 0,
		"hash=" + own.TxHash.String():   2,
		"chainId=42431&hash=" + other.TxHash.String(): 0,
		"name=tx.broadcast":                           1,
		"stream=tx-":                                  2,
	} {
		got := s.allThat(query, "X-API-Key", token)
		for _, shown := range got {
			if shown["txHash"] != own.TxHash.String() {
				t.Errorf("%s: shown %v", query, shown)
			}
		}
		if len(got) != want {
			t.Errorf("%s: %d events, want %d", query, len(got), want)
		}
	}
}
