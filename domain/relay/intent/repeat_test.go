package intent

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The effect of a request is what happens on the chain, not what it costs.
func TestEffect(t *testing.T) {
	request := func(change func(*Request)) Request {
		r := Request{Client: "shop", Key: "a", From: From{Pool: "hot"}, Chain: 1, Calls: []Call{{To: &chain.Address{9}, Value: NewAmount(1)}}}
		change(&r)
		return r
	}
	plain := request(func(*Request) {}).Effect().Digest()
	key := chain.NonceKey{31: 7}
	for name, c := range map[string]struct {
		change func(*Request)
		same   bool
	}{
		"another key":       {func(r *Request) { r.Key = "b" }, true},
		"other gas":         {func(r *Request) { r.Gas.Limit = 50_000 }, true},
		"other fees":        {func(r *Request) { r.Gas.MaxFee, r.Gas.MaxPriorityFee = NewAmount(9), NewAmount(2) }, true},
		"another fee token": {func(r *Request) { r.Gas.FeeToken = &chain.Address{8} }, true},
		"another client":    {func(r *Request) { r.Client = "bank" }, false},
		"another pool":      {func(r *Request) { r.Pool = "cold" }, false},
		"a signer":          {func(r *Request) { r.From = From{Signer: &chain.Address{3}} }, false},
		"another chain":     {func(r *Request) { r.Chain = 2 }, false},
		"another target":    {func(r *Request) { r.Calls[0].To = &chain.Address{10} }, false},
		"another value":     {func(r *Request) { r.Calls[0].Value = NewAmount(2) }, false},
		"other data":        {func(r *Request) { r.Calls[0].Data = Data{1} }, false},
		"one more call":     {func(r *Request) { r.Calls = append(r.Calls, r.Calls...) }, false},
		"a nonce key":       {func(r *Request) { r.NonceKey = NoncePolicy{Mode: NonceFixed, Key: &key} }, false},
	} {
		if got := request(c.change).Effect().Digest() == plain; got != c.same {
			t.Errorf("%s: the same effect is %t", name, got)
		}
	}
}

// A request is remembered until the window after its first hash is over, and as long as it has none.
func TestTakesRepeats(t *testing.T) {
	asked := time.Unix(1_800_000_000, 0)
	const window = time.Minute
	requested := State{Requested: Requested{ID: chain.IntentID{1}, At: asked}}
	attempted := func(s State, kind AttemptKind, after time.Duration) State {
		return s.Evolve(Attempted{Kind: kind, Attempt: 1, Hash: chain.Hash{byte(after / time.Second)}, At: asked.Add(after)})
	}
	ended := func(s State) State { return s.Evolve(Canceled{Sequence: 9}) }
	late := attempted(requested, First, time.Hour)
	for name, c := range map[string]struct {
		state State
		after time.Duration
		want  bool
	}{
		"at once":                           {requested, 0, true},
		"without a hash for a day":          {requested, 24 * time.Hour, true},
		"just after a late hash":            {late, time.Hour + window - 1, true},
		"a window after a late hash":        {late, time.Hour + window, false},
		"by a clock that lags":              {late, time.Hour - time.Second, true},
		"after a replacement":               {attempted(late, Bump, 2*time.Hour), 2 * time.Hour, false},
		"a no-op is no hash":                {attempted(requested, NoOp, time.Second), 24 * time.Hour, true},
		"canceled before it had a hash":     {ended(requested), window - 1, true},
		"a window after it was canceled so": {ended(requested), window, false},
		"canceled by a no-op":               {ended(attempted(requested, NoOp, time.Second)), window, false},
		"completed":                         {late.Evolve(Completed{Sequence: 9}), time.Hour + window - 1, true},
	} {
		if got := c.state.TakesRepeats(asked.Add(c.after), window); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if hash, at, ok := attempted(late, Bump, 2*time.Hour).FirstHash(); !ok || hash != late.Attempts[0].Hash || !at.Equal(asked.Add(time.Hour)) {
		t.Errorf("the first hash is %s of %s, %t", hash, at, ok)
	}
}
