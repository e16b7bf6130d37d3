package main_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Replicas are killed at random, at named points and all at once, are frozen past their leases,
// and lose the data derived from the log. Meanwhile nodes cut and refuse requests, blocks are
// replaced, and owners cancel payments that are being sent. Every promise holds.
func TestRounds(t *testing.T) {
	t.Parallel()
	allEngines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		w.race(t)
		newCampaign(t, w, 1).run(t, 2, 12)
	})
}

// campaign is several rounds of faults on one store, with a record of them.
type campaign struct {
	*world
	dice     *rand.Rand
	replicas []*rig.Service
	urls     []string   // of the replicas: the same after each start
	hands    sync.Mutex // locks the replicas while some are frozen
	points   []string
	leaks    []*leaky
	flags    []string
	meddle   func() // further faults, once per round; may be nil

	items []item
	tos   []chain.Address

	mu    sync.Mutex
	acked map[chain.Hash]bool
	did   map[string]int // number of faults by kind
	back  []time.Duration
}

// item is one transaction of a campaign.
type item struct {
	rig.Payment
	kind  string
	group int
}

const replicasInTrouble = 4

func newCampaign(t *testing.T, w *world, seed uint64) *campaign {
	c := &campaign{world: w, dice: rand.New(rand.NewPCG(seed, 7)), acked: map[chain.Hash]bool{}, did: map[string]int{}}
	w.confirmations = 10            // more than the deepest reorg
	w.measure = promises.Settings{} // the strictest
	gates := map[string]*gate{}
	for n, name := range []string{"a", "b"} {
		c.leaks = append(c.leaks, &leaky{dice: rand.New(rand.NewPCG(seed, uint64(n)))})
		gates[name] = newGate(t, w.proxy.URL, c.leaks[n].serve)
	}
	w.withGates(t, gates, "a", "b")
	c.points = slices.Concat(commands.CrashPoints(), canceler.CrashPoints())
	n := replicasInTrouble
	if dir, _ := w.engine(); dir != "" {
		n, c.points = 1, append(c.points, embedded.CrashPoints()...) // it has one process
	} else if w.eventsURL() != "" {
		c.points = append(c.points, eventstoredb.CrashPoints()...)
	} else {
		c.points = append(c.points, postgres.CrashPoints()...)
	}
	for range n {
		r := w.service(t)
		r.Listen = freeAddress(t)
		c.replicas, c.urls = append(c.replicas, r), append(c.urls, "http://"+r.Listen)
	}
	return c
}

// run runs rounds with groups groups of transactions each, and then judges.
func (c *campaign) run(t *testing.T, rounds, groups int) {
	t.Helper()
	for _, r := range c.replicas {
		r.Args = append(r.Args, c.flags...)
	}
	ctx, cancel := context.WithTimeout(c.history.Record(context.Background()), patience+time.Duration(rounds)*time.Minute)
	defer cancel()
	c.ctx = ctx
	for round := range rounds {
		began := time.Now()
		c.start(t)
		items, to := c.draw(uint32(50_000+c.dice.IntN(1<<20)*100+round), groups)
		c.items, c.tos = append(c.items, items...), append(c.tos, to)
		c.trouble(t, items)
		c.wait(time.Duration(c.dice.IntN(2000)) * time.Millisecond)
		c.reorganise()
		for _, r := range c.replicas {
			r.Kill()
		}
		if c.dice.IntN(2) == 0 {
			c.note("lost all that follows from the log")
			c.forget(t)
		}
		t.Logf("round %d took %v", round, time.Since(began).Round(time.Millisecond))
	}
	c.settle(t)
}

// start starts every replica; half of them will be killed at a crash point.
func (c *campaign) start(t *testing.T) {
	t.Helper()
	for _, r := range c.replicas {
		r.Env = nil
		if c.dice.IntN(2) == 0 {
			r.Env = []string{fmt.Sprintf("WATCHTOWER_CRASH_AT=%s:%d", c.points[c.dice.IntN(len(c.points))], 1+c.dice.IntN(40))}
		}
		if err := r.Start(c.ctx); err != nil && r.Env == nil {
			t.Errorf("start: %v", err)
		}
	}
}

// draw makes the transactions of a round: single ones, sequences submitted backwards, rivals for
// a nonce, transactions without a predecessor until they expire, and subscriptions to be
// canceled.
func (c *campaign) draw(series uint32, groups int) (items []item, to chain.Address) {
	to = chain.Address{0: 0x78, 19: 1}
	binary.BigEndian.PutUint32(to[4:], series)
	for g := range groups {
		key := chain.NonceKey{31: 1}
		binary.BigEndian.PutUint32(key[8:], series)
		binary.BigEndian.PutUint32(key[16:], uint32(g))
		pay := func(kind string, nonce uint64, w chain.Window, others ...chain.Call) {
			items = append(items, item{rig.Pay(wallet.Dev(g%wallet.Devs), wallet.Tempo{
				NonceKey: key, Nonce: nonce, Window: w, Calls: append([]chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)}, others...),
			}), kind, g})
		}
		switch c.dice.IntN(7) {
		case 0, 1, 2:
			pay("alone", 0, chain.Window{})
		case 3:
			for nonce := range uint64(6) {
				pay("sequence", 5-nonce, chain.Window{})
			}
		case 4:
			pay("rival", 0, chain.Window{})
			pay("rival", 0, chain.Window{}, wallet.Transfer(wallet.PathUSD, chain.Address{9}, 1))
		case 5:
			pay("orphan", 3, chain.Window{Before: uint64(time.Now().Unix()) + 15 + c.dice.Uint64N(10)})
		case 6:
			key = subscriptionKey(series, g)
			for nonce := range uint64(6) {
				pay("canceled", nonce, chain.Window{})
			}
		}
	}
	c.dice.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items, to
}

// subscriptionKey returns the nonce key of a group.
func subscriptionKey(series uint32, g int) chain.NonceKey {
	key := chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 0x01, 0x02, 19: byte(g)}
	binary.BigEndian.PutUint32(key[14:], series)
	return key
}

// trouble posts a round's transactions while replicas are killed or frozen.
func (c *campaign) trouble(t *testing.T, items []item) {
	t.Helper()
	work := make(chan item)
	var posting sync.WaitGroup
	for range 8 {
		posting.Go(func() {
			for i := range work {
				c.post(i, c.urls[int(i.Hash[0])%len(c.urls)])
			}
		})
	}
	killAt, freezeAt, cancelAt := c.dice.IntN(len(items)), c.dice.IntN(len(items)), len(items)*2/3
	all := c.dice.IntN(3) == 0 || len(c.replicas) == 1
	victim, frozen := c.dice.IntN(len(c.replicas)), c.dice.IntN(len(c.replicas))
	for n, i := range items {
		switch n {
		case freezeAt:
			posting.Go(func() { c.freeze(c.replicas[frozen]) })
		case killAt:
			for r, s := range c.replicas {
				if all || r == victim {
					c.hands.Lock()
					s.Kill()
					c.hands.Unlock()
				}
			}
			c.note(map[bool]string{true: "all killed", false: "one killed"}[all])
			if all {
				c.recover(t, c.replicas[victim]) // the others stay down
			}
		case cancelAt:
			c.cancel(items)
		}
		work <- i
		if c.dice.IntN(4) == 0 {
			c.wait(20 * time.Millisecond)
		}
	}
	if c.meddle != nil {
		c.meddle()
	}
	close(work)
	posting.Wait()
}

// freeze stops a replica for longer than any lease.
func (c *campaign) freeze(s *rig.Service) {
	c.hands.Lock()
	err := s.Signal(syscall.SIGSTOP)
	c.hands.Unlock()
	if err != nil {
		return // it has ended
	}
	c.note("frozen for 5 s")
	c.wait(5 * time.Second)
	c.hands.Lock()
	defer c.hands.Unlock()
	_ = s.Signal(syscall.SIGCONT) // or it has ended
}

func (c *campaign) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did[what]++
}

// recover starts a replica after all were killed. It measures the time until a payment accepted
// after the restart has a node's answer.
func (c *campaign) recover(t *testing.T, s *rig.Service) {
	t.Helper()
	began := time.Now()
	c.hands.Lock()
	s.Env = nil
	err := s.Start(c.ctx)
	c.hands.Unlock()
	check(t, err)
	items, to := c.draw(uint32(1<<31+c.dice.IntN(1<<30)), 1)
	c.items, c.tos = append(c.items, items...), append(c.tos, to)
	for _, i := range items {
		c.post(i, s.URL)
	}
	if items[0].kind == "orphan" {
		return // no node answers for it
	}
	_, err = rig.Await(c.ctx, s.URL, items[0].Hash, func(t rig.Transaction) bool { return t.Attempts > 0 || t.Finalized || t.Note != "" })
	check(t, err)
	c.back = append(c.back, time.Since(began))
}

// post posts one transaction once, and records the response.
func (c *campaign) post(i item, url string) {
	short, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	results, err := rig.Submit(short, url, rig.TempoChain, i.Raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[i.Hash] = c.acked[i.Hash] || err == nil && results[0].OK
}

// cancel cancels a round's subscriptions as their owners, in every state.
func (c *campaign) cancel(items []item) {
	for _, s := range subscriptions(items) {
		short, cancel := context.WithTimeout(c.ctx, 5*time.Second)
		_, err := rig.Cancel(short, c.urls[c.dice.IntN(len(c.urls))], s.owner, s.key)
		cancel()
		if err == nil {
			c.note("canceled")
		}
	}
}

// cancelLate cancels the payments that joined subscriptions after the first cancel, as their
// owners. A signature over a group's id counts once, so they sign typed data.
func (c *campaign) cancelLate(t *testing.T) {
	t.Helper()
	client := &watchtower.Client{URL: c.replicas[0].URL}
	health, err := client.Health(c.ctx)
	check(t, err)
	for _, s := range subscriptions(c.items) {
		_, err := client.CancelGroup(c.ctx, watchtower.Cancel{
			ChainID: uint64(rig.TempoChain), Deployment: health.Deployment,
			Sender: s.owner.Address().String(), GroupID: s.key.Group().String(), Expires: time.Now().Add(time.Minute),
		}, typedBy(s.owner))
		check(t, err)
	}
}

// subscribed is a group's nonce key, and the account that may cancel it.
type subscribed struct {
	owner wallet.Key
	key   chain.NonceKey
}

// subscriptions returns the subscriptions to be canceled among the items, without duplicates.
func subscriptions(items []item) (all []subscribed) {
	for _, i := range items {
		if i.kind != "canceled" {
			continue
		}
		signed, err := decodeTempo(i.Raw)
		if err != nil {
			panic(err) // this test signed it
		}
		if s := (subscribed{wallet.Dev(i.group % wallet.Devs), signed.NonceKey}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// reorganise replaces some blocks by blocks without their transactions.
func (c *campaign) reorganise() {
	if c.dice.IntN(2) == 0 {
		return
	}
	if rig.Call(c.ctx, c.chain.URL(), nil, "anvil_reorg", 1+c.dice.IntN(4), []any{}) == nil {
		c.note("reorganised")
	}
	c.wait(time.Duration(c.dice.IntN(1500)) * time.Millisecond)
}

// told formats the campaign's figures in one line.
func (c *campaign) told(lost, doubled int, f promises.Figures) string {
	var did []string
	for what, n := range c.did {
		did = append(did, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(did)
	acked, unknown := 0, 0
	for _, yes := range c.acked {
		if yes {
			acked++
		}
	}
	for _, call := range c.history.Calls() {
		if call.Kind == promises.Submit && call.Result == promises.Unknown {
			unknown++
		}
	}
	slices.Sort(c.back)
	back := "not measured"
	if n := len(c.back); n > 0 {
		back = fmt.Sprintf("median %v, worst %v", c.back[n/2].Round(time.Millisecond), c.back[n-1].Round(time.Millisecond))
	}
	return fmt.Sprintf("%d transactions, %d acknowledged, %d lost, %d twice, %d calls without an answer, %d sends; back %s; first attempts late: %s; %s",
		len(c.items), acked, lost, doubled, unknown, f.Sent, back, f.Late, strings.Join(did, ", "))
}
