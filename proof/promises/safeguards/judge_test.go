package safeguards_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

const here chain.ID = 42431

var (
	epoch = time.Unix(1_800_000_000, 0).UTC()
	alice = chain.Address{1}
)

// grace is the time allowed for running work in these tests.
const grace = 5 * time.Second

func who(n int) chain.IntentID { return chain.IntentID{15: byte(n)} }

func hash(name string) chain.Hash { return chain.Keccak([]byte(name)) }

// script writes a history fact by fact, and judges each fact.
type script struct {
	t       *testing.T
	judge   *safeguards.Judge
	version eventlog.Version
	at      time.Time
	found   []promises.Violation
}

func newScript(t *testing.T) *script {
	return &script{t: t, judge: safeguards.New(safeguards.Settings{Grace: grace, Gas: gas}), at: epoch}
}

func (s *script) record(on eventlog.Stream, name string, data []byte) {
	s.version++
	s.found = append(s.found, s.judge.Event(eventlog.Recorded{
		Event: eventlog.Event{ID: eventlog.ID{15: byte(s.version)}, Name: name, Data: data}, Stream: on, Version: s.version, Position: eventlog.Position(s.version), At: s.at,
	})...)
}

// log records events of an aggregate.
func log[E any](s *script, on eventlog.Stream, codec eventlog.Codec[E], facts ...E) {
	s.t.Helper()
	for _, e := range facts {
		name, data, err := codec.Encode(e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.record(on, name, data)
	}
}

func (s *script) signer(facts ...signer.Event) {
	log(s, signer.Stream(here, alice), signer.Codec(), facts...)
}

func (s *script) lane(facts ...lane.Event) {
	log(s, lane.Stream(chain.Sequence{Chain: here, Sender: alice}), lane.Codec(), facts...)
}

func (s *script) switches(facts ...safeguard.Event) {
	log(s, safeguard.Stream, safeguard.Codec(), facts...)
}

func (s *script) budget(facts ...budget.Event) {
	log(s, budget.Stream(here), budget.Codec(), facts...)
}

// asks records a client's intent.
func (s *script) asks(client string, n int) {
	log(s, intent.Stream(who(n)), intent.Codec(), intent.Event(intent.Requested{ID: who(n), Request: intent.Request{Client: client}}))
}

// wait advances the time by more than grace.
func (s *script) wait() { s.at = s.at.Add(grace + time.Nanosecond) }

// takes gives an intent a nonce in the lane of alice.
func (s *script) takes(intent int) {
	s.lane(lane.Reserved{Token: 1, First: 7, Intents: []chain.IntentID{who(intent)}})
}

func (s *script) signs(intent int) {
	e := lane.Attempted{Token: 1, Nonce: 7, Hash: hash("signed"), Number: 1}
	if intent > 0 {
		e.Intent = who(intent)
	}
	s.lane(e)
}

func registered() signer.Event {
	return signer.Registered{Pools: []string{"a"}, Actor: "ada", At: epoch}
}
func paused() signer.Event   { return signer.Paused{Actor: "ada", Reason: "moving", At: epoch} }
func draining() signer.Event { return signer.Draining{Actor: "ada", Reason: "retiring", At: epoch} }
func drained() signer.Event  { return signer.Drained{At: epoch} }
func resumed(actor string) signer.Event {
	return signer.Resumed{Actor: actor, Reason: "done", At: epoch}
}

func disabled() signer.Event {
	return signer.Disabled{Kind: signer.Rejected, Failures: 5, Limit: 5, At: epoch}
}

func low(balance uint64) signer.Event {
	return signer.BalanceLow{Balance: chain.NewAmount(balance), Threshold: chain.NewAmount(100), At: epoch}
}

func restored(balance uint64) signer.Event {
	return signer.BalanceRestored{Balance: chain.NewAmount(balance), Threshold: chain.NewAmount(100), At: epoch}
}

// history is a correct history, or one whose last event breaks the named promise.
type history struct {
	broken promises.Number // 0: none
	write  func(*script)
}

func judged(t *testing.T, histories map[string]history) {
	t.Helper()
	for name, c := range histories {
		s := newScript(t)
		c.write(s)
		switch {
		case c.broken == 0 && len(s.found) > 0:
			t.Errorf("%s: %v", name, s.found)
		case c.broken == 0:
		case len(s.found) != 1 || s.found[0].Promise != c.broken || s.found[0].Position != eventlog.Position(s.version):
			t.Errorf("%s: %v, want %s by event %d", name, s.found, c.broken, s.version)
		}
	}
}

func TestKeys(t *testing.T) {
	after := func(do func(*script), stops ...signer.Event) func(*script) {
		return func(s *script) {
			s.signer(registered())
			s.signer(stops...)
			s.wait()
			do(s)
		}
	}
	takes := func(s *script) { s.takes(1) }
	signs := func(s *script) { s.signs(1) }
	judged(t, map[string]history{
		"serving":                {0, after(func(s *script) { s.takes(1); s.signs(1) })},
		"paused, signs":          {promises.P34, after(signs, paused())},
		"paused, signs a no-op":  {promises.P34, after(func(s *script) { s.signs(0) }, paused())},
		"paused, takes":          {promises.P34, after(takes, paused())},
		"paused, resumed":        {0, after(signs, paused(), resumed("ada"))},
		"draining, takes":        {promises.P34, after(takes, draining())},
		"draining, signs":        {0, after(signs, draining())},
		"drained, signs":         {promises.P34, after(signs, draining(), drained())},
		"disabled, signs":        {promises.P34, after(signs, disabled())},
		"disabled, takes":        {promises.P34, after(takes, disabled())},
		"disabled, resumed":      {0, after(signs, disabled(), resumed("ada"))},
		"disabled, balance back": {promises.P34, after(signs, low(1), disabled(), restored(200))},
		"disabled, recovers":     {promises.P34, after(func(s *script) { s.signer(signer.Recovered{Failures: 5}) }, disabled())},
		"resumed by nobody":      {promises.P34, after(func(s *script) { s.signer(resumed("")) }, disabled())},
		"low, takes":             {promises.P34, after(takes, low(1))},
		"low, signs":             {0, after(signs, low(1))},
		"low, restored":          {0, after(takes, low(1), restored(110))},
		"resumed, still low":     {promises.P34, after(takes, low(1), paused(), resumed("ada"))},
		"low with enough":        {promises.P34, after(func(s *script) { s.signer(low(100)) })},
		"enough that is too low": {promises.P34, after(func(s *script) { s.signer(restored(99)) }, low(1))},
		"drained at once":        {promises.P34, after(func(s *script) { s.signer(drained()) })},
		"never registered":       {promises.P34, signs},
		"takes, not registered":  {promises.P34, takes},
		"paused, not registered": {promises.P34, func(s *script) { s.signer(paused()) }},
		"under way at the pause": {0, func(s *script) {
			s.signer(registered(), paused())
			s.takes(1)
			s.signs(1)
		}},
		"not since the second": {promises.P34, func(s *script) {
			s.signer(registered(), paused())
			s.wait()
			s.signer(disabled())
			s.signs(1)
		}},
		"what cannot be read": {promises.P30, func(s *script) { s.record(signer.Stream(here, alice), "signer.sold.v1", []byte("{}")) }},
		"whose it is":         {promises.P30, func(s *script) { s.record("signer-me", "signer.drained.v1", []byte("{}")) }},
		"a lane of nobody":    {promises.P30, func(s *script) { s.record("lane-me", "lane.opened.v1", []byte("{}")) }},
		"a lane's news":       {promises.P30, func(s *script) { s.record(lane.Stream(chain.Sequence{Chain: 1}), "lane.sold.v1", []byte("{}")) }},
		"others are left out": {0, func(s *script) { s.record("tx-1", "tx.sold.v1", nil) }},
	})
}

func halted(scope safeguard.Scope) safeguard.Event {
	return safeguard.Halted{Scope: scope, Actor: "ada", Reason: "fire", At: epoch}
}

func goesOn(scope safeguard.Scope) safeguard.Event {
	return safeguard.Resumed{Scope: scope, Actor: "ada", Reason: "put out", At: epoch}
}

func TestSwitches(t *testing.T) {
	all, tempo := safeguard.Scope{Kind: safeguard.Deployment}, safeguard.Scope{Kind: safeguard.OnChain, Chain: here}
	client, elsewhere := safeguard.Scope{Kind: safeguard.OfClient, Client: "payroll"}, safeguard.Scope{Kind: safeguard.OfClient, Client: "payroll", Chain: 1}
	local := safeguard.Scope{Kind: safeguard.OfClient, Client: "payroll", Chain: here}
	// after requests intent 1 of a client, changes switches, and signs.
	after := func(signed int, facts ...safeguard.Event) func(*script) {
		return func(s *script) {
			s.signer(registered())
			s.asks("payroll", 1)
			s.asks("refunds", 2)
			s.switches(facts...)
			s.wait()
			s.signs(signed)
		}
	}
	judged(t, map[string]history{
		"nothing is halted":    {0, after(1)},
		"the deployment":       {promises.P32, after(1, halted(all))},
		"the deployment, noop": {promises.P32, after(0, halted(all))},
		"the chain":            {promises.P32, after(1, halted(tempo))},
		"the chain, a no-op":   {promises.P32, after(0, halted(tempo))},
		"another chain":        {0, after(1, halted(safeguard.Scope{Kind: safeguard.OnChain, Chain: 1}))},
		"the client":           {promises.P32, after(1, halted(client))},
		"the client here":      {promises.P32, after(1, halted(local))},
		"the client elsewhere": {0, after(1, halted(elsewhere))},
		"another client":       {0, after(2, halted(client))},
		"nobody's no-op":       {0, after(0, halted(client))},
		"twice, told once":     {promises.P32, after(1, halted(all), halted(client))},
		"resumed":              {0, after(1, halted(all), goesOn(all))},
		"resumed elsewhere":    {promises.P32, after(1, halted(all), goesOn(tempo))},
		"halted again": {promises.P32, func(s *script) {
			after(1, halted(all))(s)
			s.found = nil
			s.switches(halted(all))
			s.signs(1)
		}},
		"under way when it was halted": {0, func(s *script) {
			s.signer(registered())
			s.switches(halted(all))
			s.signs(1)
		}},
		"by nobody":           {promises.P32, func(s *script) { s.switches(safeguard.Halted{Scope: all}) }},
		"resumed by nobody":   {promises.P32, func(s *script) { s.switches(safeguard.Resumed{Scope: all}) }},
		"what cannot be read": {promises.P30, func(s *script) { s.record(safeguard.Stream, "safeguard.gone.v1", []byte("{}")) }},
		"nor an intent":       {promises.P30, func(s *script) { s.record(intent.Stream(who(1)), "intent.gone.v1", []byte("{}")) }},
	})
}

// An intent that is to end without effect is not signed any more, except for running work and
// no-ops in its place.
func TestCanceledIsNotSigned(t *testing.T) {
	// ends requests intent 1 and cancels it for a reason; then an attempt is signed.
	ends := func(signed int, reason intent.Reason, later bool) func(*script) {
		return func(s *script) {
			s.signer(registered())
			s.asks("payroll", 1)
			s.asks("payroll", 2)
			log(s, intent.Stream(who(1)), intent.Codec(), intent.Event(intent.CancelRequested{Reason: reason, At: epoch}))
			if later {
				s.wait()
			}
			s.signs(signed)
		}
	}
	judged(t, map[string]history{
		"canceled":       {promises.P23, ends(1, intent.Withdrawn, true)},
		"too late":       {promises.P23, ends(1, intent.Deadline, true)},
		"under way":      {0, ends(1, intent.Withdrawn, false)},
		"a no-op":        {0, ends(0, intent.Withdrawn, true)},
		"another intent": {0, ends(2, intent.Withdrawn, true)},
	})
}
