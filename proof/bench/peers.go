package main

import (
	"context"
	"time"
)

// trial is a run that other programs also made on the same kind of machine: anvil with a block a
// second, transfers of 1 wei to separate accounts, a gas limit of 25,000, 32 clients. The other
// programs and the relayer sign the transfers; for the watchtower they are signed in advance.
type trial struct {
	name     string
	payments int
	signers  int
	rate     int // payments a second; 0: as fast as possible
	window   int // scheduler.window, or the relayer's lane.budget; 0: the default

	cut      float64 // share of the node's replies to sends that are cut
	replicas int     // in addition to the first, on the same database
	doubled  bool    // every second request is sent twice at once
	kill     time.Duration
	down     time.Duration // time before the restart
	// takeover leaves the killed service down: another replica gets the requests all along, and
	// must take over. Each payment then names its signer, so that every lane has work.
	takeover bool

	aims  aims
	peers []peer
}

// aims are the goals of a trial; 0: none. Times are the 99th percentile in seconds.
type aims struct {
	mined, cpu, calls, toMined, toFinal, back float64
	// against is the trial whose mining rate must be reached.
	against string
}

// shared reports whether a trial needs a database that several processes can use.
func (t trial) shared() bool { return t.replicas > 0 }

// peerClients is the number of concurrent clients.
const peerClients = 32

func trials() []trial {
	o := measuredOthers()
	return []trial{
		{name: "1 signer, at once", payments: 1000, signers: 1},
		{name: "1 signer, at once, window 1000", payments: 1000, signers: 1, window: 1000, peers: o.oneSigner},
		{name: "10 signers, at once", payments: 2000, signers: 10},
		{name: "10 signers, at once, window 1000", payments: 2000, signers: 10, window: 1000, peers: o.tenSigners},
		{name: "10 signers, 20/s", payments: 300, signers: 10, rate: 20, peers: o.steady},
		{name: "3 % of replies lost, 20/s", payments: 300, signers: 10, rate: 20, cut: 0.03, peers: o.lost},
		{name: "kill -9 at 8 s, back 3 s later, 20/s", payments: 500, signers: 10, rate: 20, kill: 8 * time.Second, down: 3 * time.Second, peers: o.killed},
		{name: "2 replicas, 2 signers", payments: 600, signers: 2, replicas: 1, peers: o.replicas},
		{name: "every second request twice at once", payments: 400, signers: 10, doubled: true, peers: o.doubled},
	}
}

// fewer are the trials with a tenth of the payments, and an early kill.
func fewer(all []trial) []trial {
	for i := range all {
		all[i].payments /= 10
		all[i].kill, all[i].down = all[i].kill/8, all[i].down/8
		all[i].cut *= 10
		all[i].peers, all[i].aims = nil, aims{}
	}
	return all
}

// besidePeers runs the peers' trials on the watchtower.
func (b *bench) besidePeers(ctx context.Context, engine string, _ loads) error {
	return b.tryAll(ctx, sectionPeers, engine, func(trial) counter { return delivery{b.program} })
}
