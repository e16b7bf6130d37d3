package main

import (
	"context"
	"time"
)

// trial is a run that other programs of this kind were put through on the same kind of
// machine: anvil with a block a second, transfers of 1 wei to an account each, a gas limit
// of 25,000, 32 clients. They sign by themselves, as the relayer does; what the watchtower
// is given was signed beforehand.
type trial struct {
	name     string
	payments int
	signers  int
	rate     int // payments a second; 0 is as fast as the clients may
	window   int // scheduler.window, or lane.budget of the relayer; 0 is the default

	cut      float64 // of the replies of the node to sends
	replicas int     // beside the first, on the same database
	doubled  bool    // every second request is sent twice at once
	kill     time.Duration
	down     time.Duration // after which it is started again
	// takeover leaves it dead: another replica is asked all along, and is to go on in its
	// place. Each payment names its signer then, so that every lane has to.
	takeover bool

	aims  aims
	peers []peer
}

// aims are the goals of what a trial shows; 0 is none. Times are in seconds, and of 99
// of 100.
type aims struct {
	mined, cpu, calls, toMined, toFinal, back float64
	// against is the trial whose rate of mining is to be reached.
	against string
}

// shared reports whether a trial needs a database that several processes can use.
func (t trial) shared() bool { return t.replicas > 0 }

// peerClients post at once.
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

// fewer are the trials with a tenth of the payments, and a service that is killed soon.
func fewer(all []trial) []trial {
	for i := range all {
		all[i].payments /= 10
		all[i].kill, all[i].down = all[i].kill/8, all[i].down/8
		all[i].cut *= 10
		all[i].peers, all[i].aims = nil, aims{}
	}
	return all
}

// besidePeers puts the watchtower through what others were put through.
func (b *bench) besidePeers(ctx context.Context, engine string, _ loads) error {
	return b.tryAll(ctx, sectionPeers, engine, func(trial) counter { return delivery{b.program} })
}
