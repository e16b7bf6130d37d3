package main

import (
	"context"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// plainChain is the id of a chain that anvil makes when it is told nothing.
const plainChain chain.ID = 31337

// transfer is a signed payment of 1 wei to an account that nobody else pays.
type transfer struct {
	rig.Payment
	to chain.Address
}

// transfers signs payments by several accounts in turn, each with its nonces in order.
func transfers(n, signers int) []transfer {
	const gwei = 1_000_000_000
	all := make([]transfer, n)
	var signing sync.WaitGroup
	for s := range signers {
		signing.Go(func() {
			key := wallet.Dev(s)
			for i := s; i < n; i += signers {
				to := chain.Address{0: 0x99, 1: 0x01}
				binary.BigEndian.PutUint64(to[12:], uint64(i)) //nolint:gosec // a small number
				raw := wallet.Ethereum{
					Chain: plainChain, MaxPriorityFee: gwei, MaxFee: 100 * gwei, Gas: 25_000, Nonce: uint64(i / signers), //nolint:gosec // likewise
					Call: chain.Call{To: &to, Value: uint256.NewInt(1)},
				}.Sign(key)
				all[i] = transfer{rig.Payment{Raw: raw, Hash: chain.Keccak(raw)}, to}
			}
		})
	}
	signing.Wait()
	return all
}

// sightings are when each transaction was first seen in a block, by one who asks the
// chain itself all the time.
type sightings struct {
	url  string
	mu   sync.Mutex
	at   map[chain.Hash]time.Time
	next uint64 // block to look at
}

// sightEvery is how exactly it is known when a block is there.
const sightEvery = 20 * time.Millisecond

// watch looks at new blocks until ctx ends.
func (s *sightings) watch(ctx context.Context) {
	tick := time.NewTicker(sightEvery)
	defer tick.Stop()
	for {
		var b struct{ Transactions []chain.Hash }
		// null, while there is no such block, leaves b as it is; and trouble passes.
		for s.block(ctx, &b) == nil && b.Transactions != nil {
			now := time.Now()
			s.mu.Lock()
			for _, hash := range b.Transactions {
				s.at[hash] = now
			}
			s.mu.Unlock()
			s.next++
			b.Transactions = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *sightings) block(ctx context.Context, into any) error {
	return rig.Call(ctx, s.url, into, "eth_getBlockByNumber", "0x"+strconv.FormatUint(s.next, 16), false)
}

func (s *sightings) of(hash chain.Hash) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok = s.at[hash]
	return at, ok
}

// unseenMost is how long nothing of what is waited for may be seen before it is given up.
const unseenMost = 45 * time.Second

// all waits until each transfer has been seen, or none has for long.
func (s *sightings) all(ctx context.Context, wanted []transfer) {
	tick := time.NewTicker(sightEvery)
	defer tick.Stop()
	open, since := wanted, time.Now()
	for len(open) > 0 && time.Since(since) < unseenMost {
		var left []transfer
		for _, t := range open {
			if _, ok := s.of(t.Hash); !ok {
				left = append(left, t)
			}
		}
		if len(left) < len(open) {
			since = time.Now()
		}
		open = left
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// quantity asks the chain for a number.
func quantity(ctx context.Context, url, method string, of chain.Address) (uint64, error) {
	var answer string
	if err := rig.Call(ctx, url, &answer, method, of.String(), "latest"); err != nil {
		return 0, err
	}
	return strconv.ParseUint(answer, 0, 64)
}

// paid counts what was not paid of what was accepted, and what was paid twice: by what
// the payees have, and by how many nonces the payers have used.
func paid(ctx context.Context, url string, all []transfer, signers int, accepted func(transfer) bool) (lost, double int, err error) {
	standing := uint64(0)
	for _, t := range all {
		wei, err := quantity(ctx, url, "eth_getBalance", t.to)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case wei == 0 && accepted(t):
			lost++
		case wei > 1:
			double++
		}
		standing += min(wei, 1)
	}
	used := uint64(0)
	for s := range signers {
		n, err := quantity(ctx, url, "eth_getTransactionCount", wallet.Dev(s).Address())
		if err != nil {
			return 0, 0, err
		}
		used += n
	}
	return lost, max(double, int(used-standing)), nil //nolint:gosec // each payment that stands has used a nonce
}
