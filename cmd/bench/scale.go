package main

import "time"

// scale is how much is measured.
type scale struct {
	runs int // of everything; the median counts
	// spin is how long each measure of pure computing takes.
	spin time.Duration

	blockTime time.Duration // the pause between blocks of the simulated chain

	alone int // appends by one caller
	lives int // transactions in the log, four events each, by 256 callers

	scheduled int // accepted for later, in all
	oneByOne  int // of these, each in a request of its own
	due       int // becoming eligible each second
	dueFor    int // seconds

	payments  int // delivered as fast as may be, each on a nonce key of its own
	senders   int // delivered likewise, but in order: payments/senders on one key each
	rate      int // payments a second
	steadyFor int // seconds

	anvil int // delivered at once by a real node
	fleet int // accepted for later by one replica, and by several: long enough for each to be warm
	crew  int // delivered by one replica, and by several: many blocks full

	crowds  []int         // scheduled transactions, each number with a service of its own
	herd    int           // becoming eligible in the same second beside each crowd
	idleFor time.Duration // how long each crowd is left alone

	trials map[string][]trial // what others were put through, too, by section
	beside neighbourly        // ten clients, one of which may misbehave
}

// full is what figures are told from.
func full() scale {
	return scale{
		runs: 3, spin: time.Second, blockTime: time.Second,
		alone: 4000, lives: 50_000,
		scheduled: 100_000, oneByOne: 20_000, due: 150, dueFor: 20,
		payments: 2000, senders: 10, rate: 20, steadyFor: 20,
		anvil: 500, fleet: 80_000, crew: 10_000,
		crowds: []int{10_000, 1_000_000}, herd: 100_000, idleFor: 30 * time.Second,
		trials: map[string][]trial{sectionPeers: trials(), sectionRelay: relayTrials()},
		beside: neighbourly{rate: 5, lasts: time.Minute, limit: 100, times: 10, connections: 64},
	}
}

// small takes about half a minute and shows that everything works.
func small() scale {
	return scale{
		runs: 1, spin: 100 * time.Millisecond, blockTime: time.Second,
		alone: 200, lives: 1000,
		scheduled: 3000, oneByOne: 1000, due: 50, dueFor: 3,
		payments: 200, senders: 10, rate: 20, steadyFor: 3,
		anvil: 100, fleet: 2000, crew: 400,
		crowds: []int{300, 3000}, herd: 500, idleFor: time.Second,
		trials: map[string][]trial{sectionPeers: fewer(trials()), sectionRelay: fewer(relayTrials())},
		beside: neighbourly{rate: 5, lasts: 10 * time.Second, limit: 100, times: 10, connections: 64},
	}
}

const (
	callers    = 256 // at once: of a log, and of the service one by one
	batchSize  = 100 // transactions in a request
	batchesOut = 8   // such requests at once
)
