package programtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// Contract checks every program, with any service.
func Contract(t *testing.T, c Case) {
	Signs(t, c)
	t.Run("tries again", c.triesAgain)
	t.Run("says what there is no signature for", c.givesUp)
	t.Run("waits for nobody for ever", c.waitsForNobody)
	t.Run("starts with no other key", c.startsWithNoOtherKey)
	t.Run("tells whether it can sign", c.tellsWhetherItCanSign)
	t.Run("is documented", func(t *testing.T) { Documented(t, c.Program) })
}

// Signs is the part of the contract that depends on the key's curve.
func Signs(t *testing.T, c Case) {
	t.Run("signs", c.signs)
	t.Run("signs transactions that the chain reads", c.signsTransactions)
}

// one returns the only signer that a relayer finds.
func one(t *testing.T, at string) *keys.Signer {
	t.Helper()
	all := signers(t, at)
	if len(all) != 1 {
		t.Fatalf("it has %d keys, want 1", len(all))
	}
	return all[0]
}

// signs checks signatures of a service with random k and either s.
func (c Case) signs(t *testing.T) {
	at, _ := c.start(t, "-timeout", "1m", "-keys", c.Listed())
	for name, trouble := range map[string]keystest.Trouble{"either s": {}, "higher s": {HighS: true}, "lower s": {LowS: true}} {
		t.Run(name, func(t *testing.T) {
			c.Double.Misbehave(trouble)
			defer c.Double.Misbehave(keystest.Trouble{})
			keystest.Contract(t, keystest.Case{
				Open:    func(t *testing.T) *keys.Signer { return one(t, at) },
				Address: c.Key.Address(), Kind: c.Key.Kind, Secrets: c.Secrets,
			})
		})
	}
}

func (c Case) signsTransactions(t *testing.T) {
	transactions(t, c.Signer(t))
}

// transactions signs transactions, and checks that the chain's decoder finds the sender.
func transactions(t *testing.T, s *keys.Signer) {
	t.Helper()
	to := chain.Address{1}
	calls := []chain.Call{{To: &to, Value: uint256.NewInt(7), Input: []byte{0xa9, 0x05, 0x9c, 0xbb}}}
	fee, tip := uint256.NewInt(40e9), uint256.NewInt(1e9)
	written := map[string]func() (chain.Signed, error){
		"Tempo": func() (chain.Signed, error) {
			tx := chain.Unsigned{Type: tempo.Type, Chain: 42431, NonceKey: chain.NonceKey{31: 5}, Nonce: 3, Gas: 100_000, MaxFee: fee, MaxPriorityFee: tip, Calls: calls}
			return signed(t, s, tx, tempo.Payload, func(tx chain.Unsigned, sig []byte) ([]byte, error) { return tempo.Encode(tx, sig, nil) }, tempo.Decode)
		},
	}
	if s.Kind() == chain.Secp256k1 {
		written["Ethereum"] = func() (chain.Signed, error) {
			tx := chain.Unsigned{Type: ethereum.DynamicFee, Chain: 31337, Nonce: 3, Gas: 100_000, MaxFee: fee, MaxPriorityFee: tip, Calls: calls}
			return signed(t, s, tx, ethereum.Payload, ethereum.Encode, ethereum.Decode)
		}
	}
	for name, write := range written {
		for range 8 { // half of random signatures have the higher s
			if got, err := write(); err != nil || got.Sender != s.Address() || got.Signature != s.Kind() || got.Nonce != 3 {
				t.Errorf("%s: the chain reads %s, signed by %s, %s (%v), want %s, %s", name, got.Hash, got.Sender, got.Signature, err, s.Address(), s.Kind())
			}
		}
	}
}

// signed encodes, signs and decodes a transaction.
func signed(
	t *testing.T, s *keys.Signer, tx chain.Unsigned,
	payload func(chain.Unsigned) ([]byte, error), encode func(chain.Unsigned, []byte) ([]byte, error), decode func([]byte) (chain.Signed, error),
) (chain.Signed, error) {
	t.Helper()
	toSign, err := payload(tx)
	if err != nil {
		return chain.Signed{}, err
	}
	signature, err := s.Sign(t.Context(), toSign)
	if err != nil {
		return chain.Signed{}, err
	}
	raw, err := encode(tx, signature)
	if err != nil {
		return chain.Signed{}, err
	}
	return decode(raw)
}

// triesAgain makes the service fail once: the program retries, and the relayer sees no error.
func (c Case) triesAgain(t *testing.T) {
	s := c.Signer(t)
	for name, trouble := range map[string]keystest.Trouble{
		"throttled": c.Throttled, "500": {Status: 500}, "503": {Status: 503}, "cut": {Cut: true}, "no JSON": {Body: "<html>"}, "without end": {Huge: true},
	} {
		c.Double.MisbehaveOnce(trouble)
		if _, err := s.Sign(t.Context(), []byte("payload")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// givesUp makes the service fail permanently. The relayer must wait, for any cause: it is not
// the transaction's fault.
func (c Case) givesUp(t *testing.T) {
	at, log := c.start(t, "-timeout", "1m", "-keys", c.Listed())
	s := one(t, at)
	other := &keystest.Key{Kind: c.Key.Kind, Secret: []byte("32 bytes that are another secret")}
	for name, of := range map[string]struct {
		trouble keystest.Trouble
		status  int
	}{
		"throttled":    {c.Throttled, http.StatusTooManyRequests},
		"500":          {keystest.Trouble{Status: 500}, http.StatusServiceUnavailable},
		"cut":          {keystest.Trouble{Cut: true}, http.StatusBadGateway},
		"refused":      {c.Refused, http.StatusBadGateway},
		"another key":  {keystest.Trouble{By: other}, http.StatusBadGateway},
		"no signature": {keystest.Trouble{Body: "{}"}, http.StatusBadGateway},
	} {
		c.Double.Misbehave(of.trouble)
		signature, err := s.Sign(t.Context(), []byte("payload"))
		busy := (*keys.Busy)(nil)
		if !errors.As(err, &busy) || busy.Status != of.status || signature != nil {
			t.Errorf("%s: %x and %v, want a status of %d", name, signature, err, of.status)
		}
		c.Double.Misbehave(keystest.Trouble{})
		if _, err := s.Sign(t.Context(), []byte("payload")); err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
	for _, says := range []string{"no signature", c.Key.Address().String(), "got a signature by another key"} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("the log does not say %q:\n%s", says, log)
		}
	}
}

func (c Case) waitsForNobody(t *testing.T) {
	at, _ := c.start(t, "-timeout", "2s", "-keys", c.Listed())
	s := one(t, at)
	c.Double.Misbehave(keystest.Trouble{Hang: true})
	defer c.Double.Misbehave(keystest.Trouble{})
	busy := (*keys.Busy)(nil)
	if _, err := s.Sign(t.Context(), []byte("payload")); !errors.As(err, &busy) || busy.Status != http.StatusGatewayTimeout {
		t.Errorf("of a service that does not answer, the relayer hears %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c.Double.Misbehave(keystest.Trouble{Hang: true, Reached: leave})
	if _, err := s.Sign(ctx, []byte("payload")); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves hears %v", err)
	}
}

func (c Case) startsWithNoOtherKey(t *testing.T) {
	other := chain.Address{7}.String()
	for _, of := range []struct {
		says, list string
		trouble    keystest.Trouble
	}{
		{"the key of " + c.Key.Address().String() + ", not of " + other, other + "=" + c.Name, keystest.Trouble{}},
		{"list it as " + c.Listed(), c.Name, keystest.Trouble{}}, // the account is not listed
		{c.Unknown, c.Key.Address().String() + "=" + c.Unknown, keystest.Trouble{}},
		{"the same key", c.Listed() + "," + c.Listed(), keystest.Trouble{}},
		{c.Name, c.Listed(), c.Refused},
		{c.Name, c.Listed(), c.Throttled},
		{c.Name, c.Listed(), keystest.Trouble{Status: 500}},
		{c.Name, c.Listed(), keystest.Trouble{Body: "<html>"}},
		{c.Name, c.Listed(), keystest.Trouble{Body: "{}"}},
	} {
		c.Double.Misbehave(of.trouble)
		c.Fails(t, of.says, "-keys", of.list)
		c.Double.Misbehave(keystest.Trouble{})
	}
}

func (c Case) tellsWhetherItCanSign(t *testing.T) {
	well, _ := c.start(t, "-keys", c.Listed())
	ill, log := c.start(t, "-keys", c.Listed())
	for at, want := range map[string]string{
		well + "/upcheck":     "200 OK",
		well + "/healthcheck": `200 {"status":"UP"}`,
		ill + "/upcheck":      "200 OK",
		ill + "/healthcheck":  `503 {"status":"DOWN"}`,
	} {
		if strings.HasPrefix(at, ill) {
			c.Double.Misbehave(c.Refused)
		}
		if got := get(t, "http://"+at); got != want {
			t.Errorf("%s answers %s, want %s", at, got, want)
		}
		c.Double.Misbehave(keystest.Trouble{})
	}
	if !strings.Contains(log.String(), "cannot be used") {
		t.Errorf("the log does not say that the keys cannot be used:\n%s", log)
	}
}

// get returns a response's status and body.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // there is nothing to lose
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status[:3] + " " + string(body)
}
