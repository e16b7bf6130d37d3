package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// relayBudget is the maximum number of nonces in flight per lane in a trial.
const relayBudget = 300

// relayTrials are the peers' runs, with the same work, for the relayer. Two further trials have
// no peers: several replicas with the work of one, and a takeover by another replica.
func relayTrials() []trial {
	o := measuredOthers()
	bulk := func(mined float64) aims { return aims{mined: mined, cpu: 5, calls: 1.2} }
	const ten = "10 signers, at once"
	all := []trial{
		{name: "1 signer, at once", payments: 1000, signers: 1, aims: bulk(100), peers: o.oneSigner},
		{name: ten, payments: 2000, signers: 10, aims: bulk(300), peers: o.tenSigners},
		{name: "10 signers, 20/s", payments: 300, signers: 10, rate: 20, aims: aims{toMined: 1.2, toFinal: 1.5}, peers: o.steady},
		{name: "3 % of replies lost, 20/s", payments: 300, signers: 10, rate: 20, cut: 0.03, peers: o.lost},
		{name: "kill -9 at 8 s, back 3 s later, 20/s", payments: 500, signers: 10, rate: 20, kill: 8 * time.Second, down: 3 * time.Second, peers: o.killed},
		{name: "2 replicas, 2 signers", payments: 600, signers: 2, replicas: 1, peers: o.replicas},
		{name: "2 replicas, 10 signers, at once", payments: 2000, signers: 10, replicas: 1, aims: aims{against: ten}},
		{name: "holder of all lanes killed at 8 s, 20/s", payments: 400, signers: 10, rate: 20, replicas: 1, kill: 8 * time.Second, takeover: true, aims: aims{back: 5}},
		{name: "every second request twice at once", payments: 400, signers: 10, doubled: true, peers: o.doubled},
	}
	for i := range all {
		all[i].window = relayBudget
	}
	return all
}

// besideRelays runs the peers' trials on the relayer.
func (b *bench) besideRelays(ctx context.Context, engine string, _ loads) error {
	return b.tryAll(ctx, sectionRelay, engine, func(t trial) counter { return relaying{b.relayer, t.takeover} })
}

// holdsLanes waits until a relayer reports that it holds the lanes of all signers.
func holdsLanes(ctx context.Context, s *rig.Service, signers int) error {
	wanted := map[string]bool{}
	for i := range signers {
		l := worker.Lane{ID: chain.Sequence{Chain: plainChain, Sender: wallet.Dev(i).Address()}}
		wanted[l.LeaseName()] = true
	}
	for {
		held := map[string]bool{}
		for line := range s.Logged("lease won") {
			var entry struct{ Lease string }
			if json.Unmarshal(line, &entry) == nil && wanted[entry.Lease] {
				held[entry.Lease] = true
			}
		}
		if len(held) == len(wanted) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d lanes are held: %w\n%s", len(held), signers, ctx.Err(), s.Tail())
		case <-time.After(sightEvery):
		}
	}
}

// wentOn is the time from the first service's death until each signer has sent the node a new
// transaction.
func (st *stand) wentOn() (time.Duration, error) {
	known := map[chain.Hash]bool{}
	first := map[chain.Address]time.Duration{}
	longest := time.Duration(0)
	for _, d := range st.proxy.Deliveries() {
		hash := chain.Keccak(d.Raw)
		if known[hash] {
			continue
		}
		known[hash] = true
		after := d.At.Sub(st.killed)
		if after < 0 {
			continue
		}
		tx, err := ethereum.Decode(d.Raw)
		if err != nil {
			return 0, err
		}
		if _, again := first[tx.Sender]; !again {
			first[tx.Sender], longest = after, max(longest, after)
		}
	}
	if len(first) < st.signers {
		return 0, fmt.Errorf("%d of %d signers went on", len(first), st.signers)
	}
	return longest, nil
}
