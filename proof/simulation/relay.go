package simulation

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// RelayPlan is the relay half of a world: replicas hold keys, and carry out intents beside
// delivery. Without signers there is none.
type RelayPlan struct {
	Signers       int
	Intents       float64 // submitted per second
	Budget        int     // maximum number of nonces in flight per lane
	Confirmations int
	Trusted       int
	Stall         time.Duration
	Claim         time.Duration
	Linger        time.Duration
	Look          time.Duration `json:",omitzero"` // interval of reading the chain's next nonce; 0: the default

	Ceiling   uint64 // maximum gas price for signing, in gwei
	Allowance uint64 // each signer's daily limit for gas, in gwei; 0: unlimited

	Wish   WishFaults
	Sign   SignFaults
	Market time.Duration // interval of changes of the gas price
	Rival  time.Duration // interval of a key's uses by another sender
	Undo   float64       `json:",omitzero"` // chance that a fork reverts that, once a lane has gone on beyond it
	Forget time.Duration // interval of losses of all lane leases
	Acts   time.Duration // interval of operators' actions
	Fill   time.Duration // interval of operators' checks for nonce gaps
	Hooks  HookPlan      `json:",omitzero"`
}

// WishFaults are chances per intent.
type WishFaults struct {
	Row      float64 // it is in an ordering group
	Keyed    float64 // it names a nonce key
	Named    float64 // it names a signer instead of the pool
	Deadline float64
	Poor     float64 // its fee limit is little more than the gas price, or less
	Fails    float64 // its call fails
	Withdraw float64 // its client cancels it or speeds it up, at once or later
	Twice    float64 // it is submitted again, or another one under its key
}

// SignFaults are chances per signature.
type SignFaults struct {
	Refuse float64 // a transient refusal
	Cut    float64 // the answer is lost
	Slow   float64
	Down   time.Duration // interval of outages of all signers
	Bears  int           `json:",omitzero"` // consecutive failures that disable a signer; 0: the default
}

// ExpandRelay derives a seed's plan with a relay half.
func ExpandRelay(seed uint64, hours float64) Plan {
	p := Expand(seed, hours)
	d := dice{rand.New(rand.NewPCG(seed, 0x1a9e))}
	p.Requests = 0.3
	p.Relay = RelayPlan{
		Signers: 1 + d.IntN(3), Intents: 0.6, Budget: 2 + d.IntN(12), Confirmations: 1 + d.IntN(3),
		Stall: d.of(10*time.Second, 20*time.Second, 30*time.Second), Claim: d.of(5*time.Second, 10*time.Second, 20*time.Second),
		Linger: d.of(10*time.Second, time.Minute, 10*time.Minute),
		Wish: WishFaults{
			Row: d.rate(0.5), Keyed: d.rate(0.3), Named: d.rate(0.5), Deadline: d.rate(0.2), Poor: d.rate(0.4), Fails: d.rate(0.1),
			Withdraw: d.rate(0.3), Twice: d.rate(0.2),
		},
		Sign:   SignFaults{Refuse: d.rate(0.3), Cut: d.rate(0.05), Slow: d.rate(0.05), Down: d.every(6 * time.Minute)},
		Market: d.every(time.Minute), Rival: d.every(time.Minute), Forget: d.every(3 * time.Minute), Acts: d.every(2 * time.Minute),
	}
	p.Relay.Trusted = d.IntN(p.Relay.Confirmations + 1)
	p.Relay.Ceiling, p.Relay.Fill = 160+d.Uint64N(300), d.every(20*time.Second)
	p.Relay.Allowance = uint64(d.rate(1.5e9)) // about a signer's spending in such a world where gas has a price
	p.Store.Refuse, p.Crowd.Lose = d.rate(0.05), d.every(20*time.Minute)
	p.Chain.Stall = d.every(5 * time.Minute) // long enough for another attempt at the nonces in flight
	p.Relay.Hooks = expandHooks(seed)
	p.Crowd.Rebuild, p.Chain.Unseal, p.Chain.Reorg = d.every(20*time.Minute), d.every(10*time.Minute), d.every(2*time.Minute)
	p.Relay.Sign.Bears = 2 + d.IntN(9)
	if market := d.about(time.Minute); p.Relay.Allowance > 0 && p.Relay.Market == 0 {
		p.Relay.Market = market
	}
	p.Relay.Look, p.Relay.Undo = d.of(5*time.Second, 20*time.Second, time.Minute), d.rate(1)
	p.Crowd.Point = 0
	if often := d.about(4 * time.Minute); seed%pointless != pointless-1 {
		p.Crowd.Point = often
	}
	return p
}

// relayed reports whether the world has a relay half.
func (w *world) relayed() bool { return w.plan.Relay.Signers > 0 }

// account is a signer's account.
type account struct {
	address chain.Address
	custody *keystest.Key // signs for replicas, each time with another k
	owner   wallet.Secp256k1
}

// Read returns random bytes for signatures.
func (w *world) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(w.agenda.rand.Uint32())
	}
	return len(p), nil
}

// accounts are the accounts of the world's signers.
func (w *world) accounts() (all []account) {
	for i := range w.plan.Relay.Signers {
		secret := chain.Keccak([]byte("simulated signer"), binary.BigEndian.AppendUint64(nil, w.plan.Seed), []byte{byte(i)})
		owner, err := wallet.NewSecp256k1(secret)
		if err != nil {
			panic(err) // a hash exceeds the curve's order once in 2^128
		}
		all = append(all, account{owner.Address(), &keystest.Key{Kind: chain.Secp256k1, Secret: secret[:], Random: w}, owner})
	}
	return all
}

// poolName is the name of the pool of all signers.
const poolName = "hot"

// relaySettings are the relay's own settings, as environment variables.
func (w *world) relaySettings() map[string]any {
	p := w.plan.Relay
	addresses := make([]string, len(w.signers))
	for i, a := range w.signers {
		addresses[i] = a.address.String()
	}
	all := strings.Join(addresses, ",")
	confirmations := max(p.Confirmations, 1)
	return map[string]any{
		"SIGNERS_ALLOWED": all, "POOLS": poolName + "=" + all,
		"LANE_BUDGET": cmp.Or(p.Budget, 1), "LANE_CONFIRMATIONS": confirmations, "LANE_TRUSTED": min(p.Trusted, confirmations),
		"LANE_STALL": cmp.Or(p.Stall, 30*time.Second), "LANE_CLAIM": cmp.Or(p.Claim, 10*time.Second),
		"LANE_LINGER": cmp.Or(p.Linger, 10*time.Minute), "LANE_POLL": 2 * time.Second, "LANE_LOOK": cmp.Or(p.Look, time.Minute),
		"SIGNERS_FAILURES": cmp.Or(p.Sign.Bears, guard.DefaultSettings().Failures),
		"FEE_CEILING":      p.ceiling(),
	}
}

// ceiling is the maximum gas price for signing, in wei. Gas costs more when fees rise, and less
// when the market moves.
func (p RelayPlan) ceiling() uint64 { return cmp.Or(p.Ceiling, 400) * gwei }

// marketMost is the maximum gas price while fees do not rise, in gwei.
const marketMost = 150

// resolve reads the settings as the program does.
func (w *world) resolve(set map[string]any) (settings.Settings, error) {
	s, _, err := settings.Resolve(nil, environ(set), nil)
	return s, err
}

// relayWeather schedules the faults of lanes and their signers.
func (w *world) relayWeather() {
	if !w.relayed() {
		return
	}
	p, a := w.plan.Relay, w.agenda
	if p.Allowance > 0 {
		w.allow(p.allowance())
	}
	if p.Market > 0 {
		w.market = marketMost / 2
		w.chain.SetBaseFee(w.market * gwei)
	}
	w.often(p.Market, "market", func() {
		w.faults["chain: gas costs something else"]++
		w.market = a.rand.Uint64N(marketMost)
		w.chain.SetBaseFee(w.market * gwei)
	})
	w.often(p.Rival, "rival", w.rival)
	w.often(p.Forget, "forget", func() {
		w.faults["store: loses the leases of lanes"]++
		w.store.ForgetLeases(lanePrefix)
	})
	w.often(p.Sign.Down, "signers down", func() {
		w.faults["signers: go down"]++
		w.signersDown = a.now() + a.between(5*time.Second, 90*time.Second)
	})
	w.often(p.Acts, "operator", w.operate)
	w.often(p.Fill, "fill", w.fillHoles)
}

// sometimesRelayed lists the events that must happen in some world with a relay half.
func sometimesRelayed() []string {
	all := []string{
		takenOver, appendedAgain, fenced, bumped, noOp, reissued, forkTold, spent,
		givenBack + "an operator wants the nonce filled", givenBack + "the intent's ceiling is below the gas price",
		givenBack + "the guard does not allow to sign the intent now", givenBack + "the intent was stopped",
		"lane: lane.filled.v1", "lane: lane.unlanded.v1", "lane: lane.lost.v1", "lane: lane.reclaimed.v1",
		"intent: intent.requeued.v1", "intent: intent.taken_over.v1", "intent: intent.reorged.v1", "intent: intent.failed.v1", "intent: intent.canceled.v1",
		hookAgain, hookRetried, hookUnknown, hookGone, hookEnabled, hookRedelivered, hookRecalled, hookTried,
		"webhook: TxAccepted", "webhook: TxSubmitted", "webhook: TxReceiptUpdated", "webhook: TxConfirmed",
		"webhook: TxConfirmed of a new fork", "webhook: TxReplaced", "webhook: TxFailed",
		"intent: intent.cancel_requested.v1", "intent: intent.speed_up_requested.v1", "intent: intent.yield_requested.v1", "intent: intent.give_way_requested.v1",
		"signer.failed.v1", "signer.disabled.v1",
		"signer.paused.v1", "signer.draining.v1", "signer.drained.v1",
		"safeguard.halted.v1", "budget.limit_set.v1", "budget.settled.v1",
	}
	for _, point := range append(worker.CrashPoints(), notifier.CrashPoints()...) {
		all = append(all, "crash at "+point)
	}
	for _, n := range append(judgedAlways(), judgedRelayed()...) {
		all = append(all, caseOf(n))
	}
	return append(all, // all injected faults
		"chain: a signer's nonce is used elsewhere", "chain: gas costs something else", "chain: fees rise", "chain: account broke",
		"chain: stalls", "chain: reorg", "chain: finality stalls", "replica: paused", "replica: rolling restart",
		"signers: go down", "signer: unreachable", "signer: busy", "signer: answer lost", "signer: slow",
		"store: loses the leases of lanes", "store: queue and read models lost", "store: read models lost",
		"client: an intent again", "client: another intent under a key", "client: cancels an intent", "client: speeds an intent up",
	)
}

// Names of some of these events.
const (
	fenced    = "lane: refused to somebody, for another has gone on"
	bumped    = "lane: signed again at a higher fee"
	noOp      = "lane: a no-op"
	reissued  = "lane: a nonce that was released is handed out"
	forkTold  = "intent: a fork of announced confirmations"
	givenBack = "lane: a nonce is given back: "
	spent     = "client: refused, for a budget is spent"
)

// lanePrefix is the prefix of lanes' lease names.
const lanePrefix = "relayer-" + lane.StreamPrefix
