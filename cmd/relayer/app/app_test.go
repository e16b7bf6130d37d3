package app

import (
	"bytes"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	variable = "RELAYER_PRIVATE_KEY_0=ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	onTempo  = chain.ID(42431)
	onOther  = chain.ID(31337)
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func resolved(t *testing.T, args ...string) settings.Settings {
	t.Helper()
	flags := pflag.NewFlagSet("relayer", pflag.ContinueOnError)
	settings.Flags(flags)
	must(t, flags.Parse(append(args, "--chains=42431=http://127.0.0.1:9;31337=http://127.0.0.1:9")))
	s, _, err := settings.Resolve(flags, nil, nil)
	must(t, err)
	return s
}

func list(all ...chain.Address) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.String()
	}
	return strings.Join(texts, ",")
}

// An intent that no process with these settings could carry out is refused, without events in
// the log. Any other is accepted once.
func TestDesk(t *testing.T) {
	alice, bob := wallet.Dev(0).Address(), wallet.Dev(1).Address()
	db, err := embedded.Open("", embedded.Options{Window: 16})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	s := resolved(t, "--signers-allowed="+list(alice), "--pools=hot="+list(alice))
	desk := Desk(s,
		worker.Intents{Store: db.Log(), Codec: intent.Codec(), Random: rand.Reader}, time.Now)
	ask := func(r intent.Request) intake.Answer {
		return desk.Create(t.Context(), []intent.Request{r}, eventlog.Meta{Actor: "test"})[0]
	}
	good := func(id chain.ID) intent.Request {
		return intent.Request{Key: "k", Chain: id, From: intent.From{Signer: &alice}, Calls: []intent.Call{{To: &bob}}}
	}
	for name, c := range map[string]struct {
		chain  chain.ID
		change func(*intent.Request)
		want   eventlog.Refusal
	}{
		"another chain":  {1, func(*intent.Request) {}, commands.ErrUnsupportedChain},
		"another signer": {onTempo, func(r *intent.Request) { r.Signer = &bob }, intake.ErrNotServed},
		"another pool":   {onTempo, func(r *intent.Request) { r.From = intent.From{Pool: "cold"} }, intake.ErrNotServed},
		"neither":        {onTempo, func(r *intent.Request) { r.From = intent.From{} }, intent.ErrInvalid},
		"a nonce key": {onOther, func(r *intent.Request) {
			r.NonceKey = intent.NoncePolicy{Mode: intent.NonceFixed, Key: &chain.NonceKey{31: 1}}
		}, intake.ErrNotServed},
		"a batch":                {onOther, func(r *intent.Request) { r.Calls = append(r.Calls, r.Calls[0]) }, intake.ErrNotServed},
		"a sponsor, on Ethereum": {onOther, func(r *intent.Request) { r.Gas.Sponsored = true }, intake.ErrNotServed},
		"a sponsor, who is none": {onTempo, func(r *intent.Request) { r.Gas.Sponsored = true }, intake.ErrNotServed},
		"a value, on Tempo":      {onTempo, func(r *intent.Request) { r.Calls[0].Value = intent.NewAmount(1) }, intake.ErrNotServed},
		"a value, in a batch": {onTempo, func(r *intent.Request) {
			r.Calls = append(r.Calls, intent.Call{To: &bob, Value: intent.NewAmount(1)})
		}, intake.ErrNotServed},
		"gas for nothing":           {onOther, func(r *intent.Request) { r.Gas.Limit = 20_999 }, intake.ErrNotServed},
		"gas for nothing, on Tempo": {onTempo, func(r *intent.Request) { r.Gas.Limit = 1 }, intake.ErrNotServed},
		"gas below the floor": {onOther, func(r *intent.Request) { // of calldata, EIP-7623
			r.Gas.Limit, r.Calls[0].Data = 12_000+40*10_000-1, bytes.Repeat([]byte{0xff}, 10_000)
		}, intent.ErrInvalid},
		"gas below the floor, on Tempo": {onTempo, func(r *intent.Request) {
			r.Gas.Limit, r.Calls[0].Data = 21_000+40*10_000-1, bytes.Repeat([]byte{0xff}, 10_000)
		}, intent.ErrInvalid},
		"gas for no creation, on Tempo": {onTempo, func(r *intent.Request) {
			r.Gas.Limit, r.Calls = 100_000, []intent.Call{{Data: intent.Data{1}}}
		}, intent.ErrInvalid},
		"gas above the ceiling":   {onOther, func(r *intent.Request) { r.Gas.Limit = 1<<24 + 1 }, intake.ErrNotServed},
		"a fee token, of none":    {onTempo, func(r *intent.Request) { r.Gas.FeeToken = &chain.Address{1} }, intake.ErrNotServed},
		"no call":                 {onTempo, func(r *intent.Request) { r.Calls = nil }, intent.ErrInvalid},
		"a nonce key without one": {onTempo, func(r *intent.Request) { r.NonceKey.Mode = intent.NonceFixed }, intent.ErrInvalid},
		"a webhook":               {onTempo, func(r *intent.Request) { r.Webhooks = []intent.Webhook{{URL: "https://example.org/"}} }, intent.ErrWebhookURL},
	} {
		r := good(c.chain)
		c.change(&r)
		if a := ask(r); !errors.Is(a.Err, c.want) {
			t.Errorf("%s: %v, want %s", name, a.Err, c.want)
		}
	}
	if head, err := db.Log().Head(t.Context()); err != nil || head != 0 {
		t.Errorf("the log is at %d (%v)", head, err)
	}
	for i, id := range []chain.ID{onTempo, onOther, onTempo} { // the last one is a repetition
		r := good(id)
		r.Key += id.String()
		if id == onOther {
			r.Calls[0].Value = intent.NewAmount(1)
		} else { // exactly enough
			r.Gas.Limit, r.Calls[0].Data = 21_000+40*10_000, bytes.Repeat([]byte{0xff}, 10_000)
		}
		a := ask(r)
		if a.Err != nil || a.State.Requested.ID != r.ID() || a.State.Status() != intent.StatusWaiting || a.Known != (i == 2) {
			t.Errorf("%s: %+v", id, a)
		}
	}
	if head, err := db.Log().Head(t.Context()); err != nil || head != 2 {
		t.Errorf("the log is at %d (%v), want two intents", head, err)
	}
	r := good(onTempo)
	r.Key += onTempo.String()
	if a := desk.SpeedUp(t.Context(), nil, r.ID(), intent.Amount(s.On(onTempo).Fee.Ceiling), eventlog.Meta{Actor: "test"}); !errors.Is(a.Err, intent.ErrOverCeiling) {
		t.Errorf("it may offer as much as what takes its place: %v", a.Err)
	}
	if a := desk.SpeedUp(t.Context(), nil, r.ID(), intent.Amount(s.On(onTempo).Fee.Most().MaxFee), eventlog.Meta{Actor: "test"}); a.Err != nil {
		t.Error(a.Err)
	}
}

// A lane under a nonce key other than 0 is opened by the process with the requested signer's
// key. Of a pool it is always the same signer.
func TestWanted(t *testing.T) {
	alice, bob, carol := wallet.Dev(0).Address(), wallet.Dev(1).Address(), wallet.Dev(2).Address()
	s := resolved(t, "--signers-allowed="+list(alice, bob, carol), "--pools=hot="+list(alice, bob, carol)+";away="+list(carol))
	c := &served{Relayer: &worker.Relayer{Chain: onTempo}, relay: &relay{settings: s}, signers: []chain.Address{alice, bob}}
	key := func(n byte) *chain.NonceKey { return &chain.NonceKey{31: n} }
	signer := func(a chain.Address) intent.From { return intent.From{Signer: &a} }
	var demand []intent.Demand
	demand = append(demand,
		intent.Demand{From: signer(alice), Waiting: 1},
		intent.Demand{From: signer(alice), Key: &protocolKey, Waiting: 1},
		intent.Demand{From: signer(alice), Key: key(1), Waiting: 1},
		intent.Demand{From: signer(alice), Key: key(1), Assigned: 1},
		intent.Demand{From: signer(carol), Key: key(2), Waiting: 1},
		intent.Demand{From: intent.From{Pool: "away"}, Key: key(3), Waiting: 1},
		intent.Demand{From: intent.From{Pool: "none"}, Key: key(4), Waiting: 1},
	)
	demand[2].First, demand[3].First = 7, 5
	demand = append(demand, intent.Demand{From: signer(alice), Key: key(1), Client: "shop", First: 9, Waiting: 1})
	of1 := chain.Sequence{Chain: onTempo, Sender: alice, Key: *key(1)}
	want := []laneDemand{{id: of1, first: 5, waiting: 1}, {id: of1, client: "shop", first: 9, waiting: 1}}
	if got := c.wanted(demand); !slices.Equal(want, got) {
		t.Errorf("%v, not %v", got, want)
	}
	var of []chain.Address
	for n := range byte(64) {
		demand := []intent.Demand{{From: intent.From{Pool: "hot"}, Key: key(n + 1), Waiting: 1}}
		lanes := c.wanted(demand)
		if len(lanes) != 1 || !slices.Contains(c.signers, lanes[0].id.Sender) || !slices.Equal(lanes, c.wanted(demand)) {
			t.Fatalf("key %d: %v", n+1, lanes)
		}
		of = append(of, lanes[0].id.Sender)
	}
	if !slices.Contains(of, alice) || !slices.Contains(of, bob) {
		t.Error("all keys are one signer's")
	}
}

// Keys that are not configured, or configured but missing, keep the program from starting.
func TestKeys(t *testing.T) {
	alice, bob := wallet.Dev(0).Address(), wallet.Dev(1).Address()
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		args    []string
		environ []string
		want    error
	}{
		"in the environment, unasked": {[]string{"--signers-allowed=" + list(alice)}, []string{variable}, keys.ErrNotDevelopment},
		"of somebody unnamed":         {[]string{"--signers-allowed=" + list(bob), "--signers-environment"}, []string{variable}, keys.ErrUnlisted},
		"of nobody":                   {[]string{"--signers-environment"}, nil, nil},
	} {
		_, _, err := openKeys(t.Context(), resolved(t, c.args...).Signers, c.environ, log)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	s := resolved(t, "--signers-allowed="+list(alice, bob), "--signers-environment", "--signers-fee-payer="+list(bob))
	ring, end, err := openKeys(t.Context(), s.Signers, []string{variable}, log)
	must(t, err)
	if diff := cmp.Diff([]chain.Address{alice}, ring.Addresses()); diff != "" {
		t.Error(diff)
	}
	signer, err := ring.Signer(alice)
	must(t, err)
	end()
	if _, err := signer.Sign(t.Context(), []byte("payload")); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// The relay's names for failures of signers, and for a Tempo token, equal the names in other
// packages.
func TestNames(t *testing.T) {
	for theirs, ours := range map[eventlog.Refusal]eventlog.Refusal{
		keys.ErrWrongKey: worker.ErrWrongKey, keys.ErrUnknownKey: worker.ErrUnknownKey,
		keys.ErrRejected: worker.ErrRejected, keys.ErrBadPayload: worker.ErrBadPayload,
	} {
		if theirs != ours {
			t.Errorf("%s is %s", theirs, ours)
		}
	}
	if pathUSD != wallet.PathUSD {
		t.Errorf("PathUSD is %s, not %s", wallet.PathUSD, pathUSD)
	}
}
