package delivery

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Rows 47 and 48: authorizations that are not the owner's for this group, deployment and time,
// and repeats of a valid one. The group exists on its chain and, as a copy, on 4217.
func cancelInputs() (list []input) {
	for _, tt := range []struct {
		what   string
		ask    func(c cancelStack) response
		status int
		code   eventlog.Refusal
	}{
		{"nothing is shown", func(c cancelStack) response { return c.shows("") }, 401, ErrSignatureRequired},
		{"another scheme", func(c cancelStack) response { return c.shows("Bearer abc") }, 401, ErrSignatureRequired},
		{"no signature", func(c cancelStack) response { return c.shows("Signature") }, 400, canceler.ErrMalformed},
		{"no hex", func(c cancelStack) response { return c.shows("Signature 0xzz") }, 400, canceler.ErrMalformed},
		{"half a byte more", func(c cancelStack) response { return c.shows("Signature " + c.good() + "0") }, 400, canceler.ErrMalformed},
		{"a byte more", func(c cancelStack) response { return c.shows("Signature " + c.good() + "00") }, 400, canceler.ErrMalformed},
		{"a byte less", func(c cancelStack) response { return c.shows("Signature " + c.good()[:130]) }, 400, canceler.ErrMalformed},
		{"junk behind it", func(c cancelStack) response { return c.shows("Signature " + c.good() + " " + c.good()) }, 400, canceler.ErrMalformed},
		{"two spaces", func(c cancelStack) response { return c.shows("Signature  " + c.good()) }, 400, canceler.ErrMalformed},
		{"0X", func(c cancelStack) response { return c.shows("Signature 0X" + c.good()[2:]) }, 400, canceler.ErrMalformed},
		{"2,050 bytes", func(c cancelStack) response { return c.shows("Signature 0x" + strings.Repeat("ab", 2050)) }, 400, canceler.ErrMalformed},
		{"a high s", func(c cancelStack) response { return c.shows("Signature " + c.twin(c.good())) }, 400, canceler.ErrMalformed},
		{"v of 2", func(c cancelStack) response { return c.shows("Signature " + c.good()[:130] + "02") }, 400, canceler.ErrMalformed},
		{"r of 0", func(c cancelStack) response {
			return c.shows("Signature 0x" + strings.Repeat("00", 32) + c.good()[66:])
		}, 400, canceler.ErrMalformed},
		{"both forms", func(c cancelStack) response {
			return c.do("POST", c.path(""), c.typed(testChain, c.soon()), "Authorization", "Signature "+c.good())
		}, 400, canceler.ErrMalformed},
		{"on two chains", func(c cancelStack) response { return c.shows("Signature " + c.good()) }, 400, ErrAmbiguousChain},
		{"of another group", func(c cancelStack) response {
			return c.asks(cancelPath(c.sender, "0x"+strings.Repeat("00", 16), ""), nil, "Signature "+c.good())
		}, 403, canceler.ErrNotOwner},
		{"of another sender", func(c cancelStack) response {
			return c.asks(cancelPath("0x"+strings.Repeat("00", 20), c.key.Group(), ""), nil, "Signature "+c.good())
		}, 403, canceler.ErrNotOwner},
		{"by a stranger", func(c cancelStack) response {
			c.owner = newKey(c.t)
			return c.shows("Signature " + c.good())
		}, 403, canceler.ErrNotOwner},
		{"on a chain without the group", func(c cancelStack) response {
			return c.asks(c.path("?chainId=1"), nil, "Signature "+c.good())
		}, 404, group.ErrUnknown},
		{"of a group that is not there", func(c cancelStack) response {
			c.key[19]++
			return c.shows("Signature " + c.good())
		}, 404, group.ErrUnknown},
		{"for no sender", func(c cancelStack) response {
			return c.asks(cancelPath("0x12", c.key.Group(), ""), nil, "Signature "+c.good())
		}, 400, rest.ErrInvalidAddress},
		{"for no group", func(c cancelStack) response {
			return c.asks(cancelPath(c.sender, "0x12", ""), nil, "Signature "+c.good())
		}, 400, ErrInvalidGroupID},
		{"a badly escaped path", func(c cancelStack) response {
			return c.asks(cancelPath("0x%2e%2e%2f", c.key.Group(), ""), nil, "Signature "+c.good())
		}, 400, rest.ErrInvalidAddress},
		{"an unknown parameter", func(c cancelStack) response { return c.asks(c.path("?chain=1"), nil, "Signature "+c.good()) }, 400, rest.ErrInvalidFilter},
		{"the form is off", func(c cancelStack) response {
			c.GroupIDForm = false
			return c.shows("Signature " + c.good())
		}, 403, canceler.ErrFormOff},
		{"typed, expired", func(c cancelStack) response { return c.shows("", c.typed(testChain, c.soon()-61)...) }, 401, group.ErrExpired},
		{"typed, too far ahead", func(c cancelStack) response { return c.shows("", c.typed(testChain, c.soon()+86_400)...) }, 400, canceler.ErrMalformed},
		{"typed, for another chain", func(c cancelStack) response {
			return c.asks(c.path("?chainId=4217"), c.typed(testChain, c.soon()), "")
		}, 403, canceler.ErrNotOwner},
		{"typed, for a chain that is not served", func(c cancelStack) response { return c.shows("", c.typed(5, c.soon())...) }, 403, canceler.ErrNotOwner},
		{"typed, for another deployment", func(c cancelStack) response {
			c.Deployment = "there"
			return c.shows("", c.typed(testChain, c.soon())...)
		}, 403, canceler.ErrNotOwner},
		{"typed, with another expiry", func(c cancelStack) response {
			body := strings.Replace(string(c.typed(testChain, c.soon())), fmt.Sprint(c.soon()), fmt.Sprint(c.soon()+1), 1)
			return c.shows("", []byte(body)...)
		}, 403, canceler.ErrNotOwner},
		{"typed, without expiry", func(c cancelStack) response { return c.shows("", []byte(`{"signature":"0x00"}`)...) }, 400, rest.ErrInvalidRequest},
		{"typed, no hex", func(c cancelStack) response {
			return c.shows("", []byte(`{"expires":1,"signature":"zz"}`)...)
		}, 400, canceler.ErrMalformed},
		{"typed, null", func(c cancelStack) response {
			return c.shows("", []byte(`{"expires":null,"signature":"0x00"}`)...)
		}, 400, rest.ErrInvalidRequest},
		{"typed, a member more", func(c cancelStack) response {
			return c.shows("", []byte(`{"expires":1,"signature":"0x00","chainId":1}`)...)
		}, 400, rest.ErrInvalidRequest},
	} {
		list = append(list, input{row: 47, what: tt.what, does: func(t *testing.T, _ *stack) int {
			c := newCancelStack(t)
			c.member(4217, c.sender, c.key, 0)
			c.caughtUp()
			before := c.events(t)
			res := tt.ask(c)
			wantProblem(t, tt.what, res, tt.status, tt.code)
			if challenge := res.header.Get("WWW-Authenticate"); (tt.code == ErrSignatureRequired) != (challenge == "Signature") {
				t.Errorf("WWW-Authenticate is %q", challenge)
			}
			if got := c.events(t); got != before {
				t.Errorf("%d events were recorded", got-before)
			}
			c.serves(t, patience)
			return 0
		}})
	}
	return append(list,
		input{row: 47, what: "the same again", does: func(t *testing.T, _ *stack) int { return canceledAgain(t, false) }},
		input{row: 47, what: "the same again, typed", does: func(t *testing.T, _ *stack) int { return canceledAgain(t, true) }},
		input{row: 48, what: "members that have ended", does: canceledTooLate},
	)
}

// good is the owner's signature over the group's id.
func (c cancelStack) good() string { return c.sign(group.Digest(c.key.Group())) }

// soon is a valid expiry.
func (c cancelStack) soon() uint64 { return uint64(testTime.Unix()) + 60 } //nolint:gosec // after 1970

// twin is the other valid signature: its s is N-s.
func (c cancelStack) twin(text string) string {
	sig := hexutil.MustDecode(text)
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64]))
	s.FillBytes(sig[32:64])
	sig[64] ^= 1
	return hexutil.Encode(sig)
}

// shows sends a cancel for the group with an Authorization, or with a body.
func (c cancelStack) shows(authorization string, body ...byte) response {
	return c.asks(c.path(""), body, authorization)
}

func (c cancelStack) asks(path string, body []byte, authorization string) response {
	if authorization == "" {
		return c.do("POST", path, body)
	}
	return c.do("POST", path, body, "Authorization", authorization)
}

// caughtUp makes all accepted transactions join their groups.
func (c cancelStack) caughtUp() {
	c.t.Helper()
	var ids []group.ID
	for _, id := range []chain.ID{testChain, 4217} {
		ids = append(ids, group.ID{Chain: id, Sender: c.sender, Group: c.key.Group()})
	}
	if err := c.CatchUp(c.t.Context(), ids); err != nil {
		c.t.Fatal(err)
	}
}

// Row 47: a repeated signature gets the same answer and has no effect.
func canceledAgain(t *testing.T, typed bool) int {
	c := newCancelStack(t)
	ask := func() response {
		if typed {
			return c.shows("", c.typed(testChain, c.soon())...)
		}
		return c.shows("Signature " + c.good())
	}
	first := ask()
	before := c.events(t)
	if first.status != 200 || !strings.Contains(string(first.body), `"canceled":2`) {
		t.Fatalf("answered %v", first)
	}
	for range 3 {
		if again := ask(); again.status != 200 || string(again.body) != string(first.body) {
			t.Errorf("first %v, then %v", first, again)
		}
	}
	if got := c.events(t); got != before {
		t.Errorf("%d events more", got-before)
	}
	c.serves(t, patience)
	return 0
}

// Row 48: a member that has ended is in the answer, and nothing is recorded for it.
func canceledTooLate(t *testing.T, _ *stack) int {
	c := newCancelStack(t)
	ended := func() (n int) {
		for _, e := range c.recorded() {
			if strings.Contains(string(e.Stream), c.hashes[0].String()) {
				n++
			}
		}
		return n
	}
	before := ended()
	res := c.shows("Signature " + c.good())
	want := fmt.Sprintf(`{"txHash":"%s","nonce":0,"status":"executed","canceled":false,"payloadErased":false}`, c.hashes[0])
	if res.status != 200 || !strings.Contains(string(res.body), want) {
		t.Errorf("answered %v, want %s in it", res, want)
	}
	if got := ended(); before == 0 || got != before {
		t.Errorf("%d events of the executed one, then %d", before, got)
	}
	return 0
}
