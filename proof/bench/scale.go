package main

import "time"

// scale is the size of the measurements.
type scale struct {
	runs int // of everything; the median counts
	// spin is the duration of each measurement of pure computing.
	spin time.Duration

	blockTime time.Duration // the pause between blocks of the simulated chain

	alone int // appends by one caller
	lives int // transactions in the log, with four events each, from 256 callers

	scheduled int // accepted for later, in total
	oneByOne  int // of these, one per request
	due       int // becoming eligible each second
	dueFor    int // seconds

	payments  int // delivered as fast as possible, each on its own nonce key
	senders   int // delivered likewise, but in order: payments/senders on one key each
	rate      int // payments a second
	steadyFor int // seconds

	anvil int // delivered at once through a real node
	fleet int // accepted for later by one replica, and by several: enough to warm up each
	crew  int // delivered by one replica, and by several: fills many blocks

	crowds  []int         // scheduled transactions, each size with its own service
	herd    int           // becoming eligible in the same second beside each crowd
	idleFor time.Duration // idle time of each crowd

	trials map[string][]trial // trials also made by others, by section
	beside neighbourly        // ten clients, one of which may misbehave
}

// full is the scale of published figures.
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
	callers    = 256 // concurrent callers: of a log, and of the service one by one
	batchSize  = 100 // transactions in a request
	batchesOut = 8   // concurrent batch requests
)
