package access

import (
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var (
	update = flag.Bool("update", false, "write samples of events that have none yet")
	now    = time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
)

// sound returns a valid Create command.
func sound() Create {
	return Create{Key: Key{
		ID: KeyID{1}, Name: "payroll", Client: "shop", Digest: Digest{2}, Scopes: []Scope{Read, Submit},
		Senders: []chain.Address{{3}}, Signers: []chain.Address{{4}}, Pools: []string{"hot"}, Rate: &Rate{10, 100}, ExpiresAt: uint64(now.Unix()) + 60,
	}, At: now}
}

func TestCreate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Create)
		want   error
	}{
		"sound":            {func(*Create) {}, nil},
		"least":            {func(c *Create) { c.Senders, c.Rate, c.ExpiresAt = nil, nil, 0 }, nil},
		"no name":          {func(c *Create) { c.Name = "" }, ErrInvalidKey},
		"long name":        {func(c *Create) { c.Name = strings.Repeat("n", 129) }, ErrInvalidKey},
		"newline in name":  {func(c *Create) { c.Name = "a\nb" }, ErrInvalidKey},
		"name not text":    {func(c *Create) { c.Name = "\xff" }, ErrInvalidKey},
		"client":           {func(c *Create) { c.Client = "shop" }, nil},
		"client not text":  {func(c *Create) { c.Client = "a\nb" }, ErrInvalidKey},
		"client of words":  {func(c *Create) { c.Client = "ann & co" }, ErrInvalidKey},
		"long client":      {func(c *Create) { c.Client = strings.Repeat("n", 65) }, ErrInvalidKey},
		"no scope":         {func(c *Create) { c.Scopes = nil }, ErrInvalidKey},
		"unknown scope":    {func(c *Create) { c.Scopes = []Scope{"everything"} }, ErrInvalidKey},
		"many senders":     {func(c *Create) { c.Senders = make([]chain.Address, SendersMax+1) }, ErrInvalidKey},
		"many signers":     {func(c *Create) { c.Signers = make([]chain.Address, SignersMax+1) }, ErrInvalidKey},
		"many pools":       {func(c *Create) { c.Pools = slices.Repeat([]string{"hot"}, PoolsMax+1) }, ErrInvalidKey},
		"no pool's name":   {func(c *Create) { c.Pools = []string{"hot", ""} }, ErrInvalidKey},
		"long pool":        {func(c *Create) { c.Pools = []string{strings.Repeat("p", 65)} }, ErrInvalidKey},
		"pool of words":    {func(c *Create) { c.Pools = []string{"hot & cold"} }, ErrInvalidKey},
		"expired":          {func(c *Create) { c.ExpiresAt = uint64(now.Unix()) }, ErrInvalidKey},
		"rate without end": {func(c *Create) { c.Rate = &Rate{RateMax + 1, 1} }, ErrInvalidKey},
		"rate of nothing":  {func(c *Create) { c.Rate = &Rate{0, 1} }, ErrInvalidKey},
		"no burst":         {func(c *Create) { c.Rate = &Rate{1, 0} }, ErrInvalidKey},
	} {
		c := sound()
		tt.change(&c)
		events, err := State{}.Decide(c)
		if !errors.Is(err, tt.want) || (err == nil) != (len(events) == 1) {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
		if name == "unknown scope" && !strings.HasSuffix(err.Error(), `"everything", only: submit read cancel rpc audit admin`) {
			t.Errorf("which scopes there are, is not told: %v", err)
		}
	}
}

func TestDecide(t *testing.T) {
	c := sound()
	c.Scopes = []Scope{Submit, Read, Submit}
	c.Senders = []chain.Address{{5}, {3}, {5}}
	c.Signers, c.Pools = []chain.Address{{6}, {4}, {6}}, []string{"hot", "cold", "hot"}
	s := State{}
	do := func(c Command, added int, want error) {
		t.Helper()
		events, err := s.Decide(c)
		if len(events) != added || !errors.Is(err, want) {
			t.Fatalf("%T: %d events, %v", c, len(events), err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
	}
	if s.Closed() {
		t.Error("closed before the first key")
	}
	do(c, 1, nil)
	do(c, 0, nil)
	if k := s.Keys[c.ID].Key; !cmp.Equal(k.Scopes, []Scope{Read, Submit}) || !cmp.Equal(k.Senders, []chain.Address{{3}, {5}}) {
		t.Errorf("kept as %v, %v", k.Scopes, k.Senders)
	}
	if k := s.Keys[c.ID].Key; !cmp.Equal(k.Signers, []chain.Address{{4}, {6}}) || !cmp.Equal(k.Pools, []string{"cold", "hot"}) {
		t.Errorf("kept as %v, %v", k.Signers, k.Pools)
	}
	taken := sound()
	taken.Digest = Digest{9}
	do(taken, 0, ErrInvalidKey)
	do(Revoke{ID: KeyID{7}, At: now}, 0, ErrUnknownKey)
	do(Revoke{ID: c.ID, Reason: "\n", At: now}, 0, ErrInvalidKey)
	before := s
	do(Revoke{ID: c.ID, Reason: "leaked", At: now}, 1, nil)
	do(Revoke{ID: c.ID, Reason: "again", At: now}, 0, nil)
	if !before.Keys[c.ID].InForce(now) || s.Keys[c.ID].InForce(now) || s.Keys[c.ID].Reason != "leaked" {
		t.Errorf("before %+v, after %+v", before.Keys[c.ID], s.Keys[c.ID])
	}
	if !s.Closed() {
		t.Error("open again after the last key")
	}
	// Only keys in force count towards KeysMax.
	for i := range KeysMax + 1 {
		k := sound()
		k.ID = KeyID{2, byte(i >> 8), byte(i)}
		if i < KeysMax {
			do(k, 1, nil)
			continue
		}
		do(k, 0, ErrTooManyKeys)
		k.At, k.ExpiresAt = now.Add(time.Hour), 0
		do(k, 1, nil)
	}
}

func TestAuthenticate(t *testing.T) {
	token, id, digest, err := NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, _, err := NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := sound()
	c.ID, c.Digest, c.ExpiresAt = id, digest, uint64(now.Unix())+60
	s := State{}.Evolve(KeyCreated(c))
	if key, ok := s.Authenticate(token, now); !ok || key.ID != id || !IsToken(token) {
		t.Errorf("%s: %v %v", token, key, ok)
	}
	for _, bad := range []string{
		"", "wt_", other, token[:len(token)-1], token + "0", strings.Replace(token, "wt_", "wx_", 1),
		token[:19] + "-" + token[20:], token[:20] + other[20:], other[:20] + token[20:], token[:83] + "x", "wt_x" + token[4:],
	} {
		if key, ok := s.Authenticate(bad, now); ok || key.ID != (KeyID{}) {
			t.Errorf("%q is taken for %v", bad, key)
		}
	}
	if _, ok := s.Authenticate(token, now.Add(time.Minute)); ok {
		t.Error("good after its expiry")
	}
	// An unknown key has a zero digest, which no secret hashes to.
	if _, ok := (State{}).Authenticate(token, now); ok {
		t.Error("good without being there")
	}
}

func TestTokensAreWholeOrNot(t *testing.T) {
	for n := range 40 {
		if token, _, _, err := NewToken(bytes.NewReader(make([]byte, n))); err == nil || token != "" {
			t.Errorf("%d random bytes made the key %q", n, token)
		}
	}
}

// Owns alone decides whose transactions a key may see and change.
func TestOwns(t *testing.T) {
	alice, bob := chain.Address{1}, chain.Address{2}
	loose := Key{ID: KeyID{7}}
	named := Key{ID: KeyID{8}, Client: "shop"}
	bound := Key{ID: KeyID{9}, Client: "shop", Senders: []chain.Address{alice}}
	heir := Key{ID: KeyID{10}, Client: loose.ID.String()}
	for name, tt := range map[string]struct {
		key     Key
		owners  []string
		sender  chain.Address
		claimed bool
		want    bool
	}{
		"its client submitted it":                {named, []string{"bank", "shop"}, bob, false, true},
		"its client claims another's account":    {named, []string{"shop"}, bob, true, true},
		"another client submitted it":            {named, []string{"bank"}, bob, false, false},
		"nobody with a key submitted it":         {named, []string{""}, bob, false, false},
		"its name is no client":                  {Key{ID: KeyID{8}, Name: "shop"}, []string{"shop"}, bob, false, false},
		"the key itself submitted it":            {loose, []string{loose.ID.String()}, bob, false, true},
		"an older key of the same client did":    {heir, []string{loose.ID.String()}, bob, false, true},
		"bound to the sender":                    {bound, []string{"bank"}, alice, false, true},
		"bound to a sender that is only claimed": {bound, []string{"bank"}, alice, true, false},
		"bound to the sender, and claims it":     {bound, []string{"shop"}, alice, true, true},
		"bound to another sender":                {bound, []string{"shop"}, bob, false, false},
	} {
		if got := tt.key.Owns(tt.owners, tt.sender, tt.claimed); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A key that names signers or pools may use nothing else; a key that names none may use all.
func TestUses(t *testing.T) {
	alice, bob := chain.Address{1}, chain.Address{2}
	for name, tt := range map[string]struct {
		key                   Key
		alice, bob, hot, cold bool
	}{
		"names none":  {Key{}, true, true, true, true},
		"a signer":    {Key{Signers: []chain.Address{alice}}, true, false, false, false},
		"a pool":      {Key{Pools: []string{"hot"}}, false, false, true, false},
		"one of each": {Key{Signers: []chain.Address{bob}, Pools: []string{"cold"}}, false, true, false, true},
	} {
		k := tt.key
		if k.UsesSigner(alice) != tt.alice || k.UsesSigner(bob) != tt.bob || k.UsesPool("hot") != tt.hot || k.UsesPool("cold") != tt.cold {
			t.Errorf("%s: %t %t %t %t", name, k.UsesSigner(alice), k.UsesSigner(bob), k.UsesPool("hot"), k.UsesPool("cold"))
		}
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) {
	eventtest.Frozen(t, Codec(), []Event{KeyCreated(sound()), KeyRevoked{ID: KeyID{1}, Reason: "leaked", At: now}, SessionEnded{ID: SessionID{4}, Key: KeyID{1}, Until: now.Add(time.Hour), At: now}}, *update)
	if len(Stream) > eventlog.MaxStreamBytes {
		t.Error("the stream's name is too long")
	}
}

// A new key that names an older key belongs to that key's client; an unknown key's id is refused.
func TestClientOfAnOlderKey(t *testing.T) {
	shop, loose := sound().Key, sound().Key
	shop.ID, loose.ID = KeyID{0xa1}, KeyID{0xa2}
	loose.Client = ""
	s := State{}
	for _, k := range []Key{shop, loose} {
		events, err := s.Decide(Create{Key: k, At: now})
		if err != nil {
			t.Fatal(err)
		}
		s = s.Evolve(events[0])
	}
	for name, want := range map[string]string{
		shop.ID.String(): "shop", loose.ID.String(): loose.ID.String(), "bank": "bank", "": "", KeyID{9}.String(): "refused",
	} {
		k := sound().Key
		k.ID, k.Client = KeyID{0xa3}, name
		events, err := s.Decide(Create{Key: k, At: now})
		got := "refused"
		if err == nil {
			got = events[0].(KeyCreated).Client
		} else if !errors.Is(err, ErrInvalidKey) {
			t.Errorf("%q: %v", name, err)
		}
		if got != want {
			t.Errorf("a key of %q belongs to %q, want %q", name, got, want)
		}
	}
}
