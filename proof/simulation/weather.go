package simulation

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// often schedules do repeatedly until the world heals, at mean intervals of usual; never if
// usual is 0.
func (w *world) often(usual time.Duration, what string, do func()) {
	if usual == 0 {
		return
	}
	var again func()
	again = func() {
		wait := time.Duration(float64(usual) * (0.1 + 0.9*w.agenda.rand.ExpFloat64()))
		w.agenda.after(wait, what, func() {
			if w.healed {
				return
			}
			do()
			again()
		})
	}
	again()
}

// weather schedules all faults and the chain's blocks.
func (w *world) weather() {
	w.mineOn()
	w.chainWeather()
	w.nodeWeather()
	w.storeWeather()
	w.cluster.weather()
	w.replicaWeather()
	w.relayWeather()
}

// mineOn produces blocks for ever.
func (w *world) mineOn() {
	w.agenda.after(w.plan.Block, "block", func() {
		if !w.load.stalled {
			w.mine()
		}
		w.mineOn()
	})
}

func (w *world) mine(others ...[]byte) {
	if _, err := w.chain.Mine(others...); err != nil {
		w.note("mine: %v", err)
	}
	w.judge.moved()
}

func (w *world) chainWeather() {
	c, a := w.plan.Chain, w.agenda
	w.often(c.Reorg, "reorg", w.reorg)
	w.often(c.Evict, "evict", func() {
		w.faults["chain: pool evicts"]++
		pooled := w.chain.Pooled()
		if len(pooled) == 0 || a.chance(0.2) {
			w.chain.DropAll()
			return
		}
		w.chain.Drop(pooled[a.rand.IntN(len(pooled))])
	})
	w.often(c.Stall, "stall", func() {
		w.faults["chain: stalls"]++
		w.load.stalled = true
		a.after(a.between(10*time.Second, 3*time.Minute), "stall over", func() { w.load.stalled = false })
	})
	w.often(c.Burst, "burst", func() {
		w.faults["chain: burst of blocks"]++
		for range 5 + a.rand.IntN(150) {
			w.mine()
		}
	})
	w.often(c.Fees, "fees", func() {
		w.faults["chain: fees rise"]++
		w.chain.SetBaseFee(gwei * 1000)
		a.after(a.between(10*time.Second, 2*time.Minute), "fees fall", func() { w.chain.SetBaseFee(w.market * gwei) })
	})
	w.often(c.Broke, "broke", func() {
		w.faults["chain: account broke"]++
		who := w.load.senders[a.rand.IntN(len(w.load.senders))].address
		if w.relayed() && a.chance(0.5) {
			who = w.signers[a.rand.IntN(len(w.signers))].address
		}
		w.chain.SetBroke(who, true)
		a.after(a.between(20*time.Second, 5*time.Minute), "funded", func() { w.chain.SetBroke(who, false) })
	})
	w.often(c.Unseal, "unseal", func() {
		w.faults["chain: finality stalls"]++
		w.chain.StallFinality(true)
		a.after(a.between(30*time.Second, 5*time.Minute), "seal", func() { w.chain.StallFinality(false) })
	})
}

// reorg replaces the newest blocks.
func (w *world) reorg() {
	a := w.agenda
	head, final := w.chain.Head(), w.chain.Final()
	depth := min(1+a.rand.IntN(w.plan.Chain.Depth), int(head.Number-final.Number)) //nolint:gosec // small
	if depth < 1 {
		return
	}
	var rivals [][]byte
	if a.chance(w.plan.Chain.Conflict) {
		rivals = w.load.rivals(depth)
	}
	w.fork(depth, a.chance(w.plan.Chain.Reinject), rivals)
}

// fork replaces the newest blocks by blocks with rivals' transactions, where these are valid.
func (w *world) fork(depth int, reinject bool, rivals [][]byte) {
	head := w.chain.Head()
	var left []chain.Block
	for number := head.Number; number > head.Number-uint64(depth); number-- { //nolint:gosec // small
		b, _ := w.chain.Canonical(number)
		left = append(left, b)
	}
	err := w.chain.Reorg(depth, reinject, rivals...)
	if err != nil && len(rivals) > 0 {
		rivals = nil
		err = w.chain.Reorg(depth, reinject)
	}
	if err != nil {
		w.note("reorg: %v", err)
		return
	}
	for _, b := range left {
		w.judge.left[b.Hash] = true
	}
	w.judge.moved()
	w.faults["chain: reorg"]++
	if len(rivals) > 0 {
		w.faults["chain: reorg with rivals"]++
		w.some[rivalsMined]++
	}
}

func (w *world) nodeWeather() {
	a := w.agenda
	w.often(w.plan.Link.Down, "node down", func() {
		w.faults["node: goes down"]++
		n := w.nodes[w.hosts[a.rand.IntN(len(w.hosts))]]
		n.down = a.now() + a.between(5*time.Second, 2*time.Minute)
		if a.chance(0.2) { // all nodes
			for _, host := range w.hosts {
				w.nodes[host].down = n.down
			}
		}
	})
	w.often(w.plan.Chain.Lag, "node lags", func() {
		w.faults["node: falls behind"]++
		n := w.nodes[w.hosts[a.rand.IntN(len(w.hosts))]]
		n.fault.Lag = uint64(1 + a.rand.IntN(20)) //nolint:gosec // small
		n.node.Set(n.fault)
		a.after(a.between(10*time.Second, 2*time.Minute), "node caught up", func() {
			n.fault.Lag = 0
			n.node.Set(n.fault)
		})
	})
	if w.plan.Liar == "" {
		return
	}
	liar := w.nodes[w.hosts[0]]
	w.often(3*time.Minute, "node lies", func() {
		w.faults["node: lies: "+w.plan.Liar]++
		w.lie(liar, a.rand.Float64())
		a.after(a.between(20*time.Second, 5*time.Minute), "node tells the truth", func() {
			liar.fault = chaintest.Faults{Lag: liar.fault.Lag}
			liar.node.Set(liar.fault)
		})
	})
}

// lie makes a node lie, to a degree.
func (w *world) lie(n *node, much float64) {
	switch w.plan.Liar {
	case "forgets":
		n.fault.Forget = much
	case "wrong hash":
		n.fault.WrongHash = much
	case "phantom receipts":
		n.fault.Phantom = true
	case "stale nonces":
		n.fault.StaleNonces = uint64(1 + 5*much)
	case "high nonces":
		n.fault.HighNonces = uint64(1 + 5*much)
	case "ahead":
		n.fault.Ahead = uint64(1 + 30*much)
	case "behind":
		n.fault.Lag = uint64(1 + 60*much)
	}
	n.node.Set(n.fault)
}

// storeSkewMost is the maximum skew of the store's clock. The due queue compares times by the
// replicas' clocks with its own, so they must not differ much.
const storeSkewMost = 400 * time.Millisecond

func (w *world) storeWeather() {
	a := w.agenda
	w.often(w.plan.Store.Down, "store down", func() {
		w.faults["store: goes down"]++
		w.storeDown = a.now() + a.between(time.Second, 40*time.Second)
	})
	w.often(w.plan.Store.Jump, "store jumps", func() {
		w.faults["store: clock jumps"]++
		w.storeSkew = a.between(-storeSkewMost, storeSkewMost)
	})
	w.often(w.plan.Crowd.Flush, "redis flush", func() {
		w.faults["redis: loses everything"]++
		w.redisEra++
		if depth, err := w.store.Depth(context.Background(), chainID); err == nil && depth.Due > 0 && w.plan.Redis {
			w.some[redisLost]++
		}
		for range a.rand.IntN(5) {
			w.ring(chainID)
		}
	})
}

func (w *world) replicaWeather() {
	c, a := w.plan.Crowd, w.agenda
	anybody := func() *replica { return w.seats[a.rand.IntN(len(w.seats))] }
	w.often(c.Crash, "crash", func() { w.kill(anybody(), "replica: crash") })
	w.often(c.CrashAll, "crash all", func() {
		for _, r := range w.seats {
			w.kill(r, "replica: crash with all others")
		}
	})
	if c.Point > 0 { // a rotating point early enough for a replica to pass it
		half := time.Duration(w.plan.Hours / 2 * float64(time.Hour))
		for range pointsFirst {
			a.after(a.between(0, half), "crash at a point", w.crashes.arm)
		}
	}
	w.often(c.Point, "crash at a point", w.crashes.arm)
	w.often(c.Pause, "pause", func() {
		if r := anybody(); r != nil && r.api != nil && !r.frozen.Load() {
			w.faults["replica: paused"]++
			w.freeze(r, a.between(time.Second, pauseMost(w.plan)))
		}
	})
	w.often(c.Rolling, "rolling restart", func() {
		w.faults["replica: rolling restart"]++
		for i, r := range w.seats {
			a.after(time.Duration(i)*20*time.Second, "restart", func() {
				if r != nil && r.api != nil && !w.closing {
					w.retire(r, w.config.ShutdownGrace) // gone starts the next life
				}
			})
		}
	})
	w.often(c.Jump, "clock jumps", func() {
		if r := anybody(); r != nil {
			w.faults["replica: clock jumps"]++
			r.skew.Store(int64(a.between(-c.Skew-time.Second, c.Skew+time.Second)))
		}
	})
	w.often(c.Rebuild, "rebuild", func() { w.lose(false) })
	w.often(c.Lose, "lose work", func() { w.lose(true) })
}

// lose stops all replicas and deletes data that can be rebuilt from the log.
func (w *world) lose(work bool) {
	what := "read models lost"
	if work {
		what = "queue and read models lost"
	}
	w.resting = true
	for _, r := range w.seats {
		w.kill(r, "replica: stopped: "+what)
	}
	w.agenda.after(w.agenda.between(time.Second, 10*time.Second), "lost", func() {
		w.faults["store: "+what]++
		w.loseViews()
		if work {
			w.store.LoseWork()
			w.hooks.startOver()
			w.owners = map[string]*replica{}
		}
		w.resting = false
		w.some[rebuiltLive]++
		for seat, r := range w.seats {
			if r == nil || r.dead.Load() {
				w.start(seat)
			}
		}
	})
}

// pauseMost is the maximum time for which a replica is frozen: longer than its leases.
func pauseMost(p Plan) time.Duration { return 3 * p.OwnerTTL }
