package main

import (
	"context"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// plainChain is anvil's default chain id.
const plainChain chain.ID = 31337

// transferGas is the gas limit of a transfer.
const transferGas = 25_000

// transfer is a payment of 1 wei to an account of its own, which identifies it.
type transfer struct {
	rig.Payment // zero if the service signs
	signer      int
	to          chain.Address
}

// payees are n unsigned transfers by several accounts in turn.
func payees(n, signers int) []transfer {
	all := make([]transfer, n)
	for i := range all {
		to := chain.Address{0: 0x99, 1: 0x01}
		binary.BigEndian.PutUint64(to[12:], uint64(i)) //nolint:gosec // a small number
		all[i] = transfer{signer: i % signers, to: to}
	}
	return all
}

// transfers signs payments by several accounts in turn, each with its nonces in order.
func transfers(n, signers int) []transfer {
	const gwei = 1_000_000_000
	all := payees(n, signers)
	var signing sync.WaitGroup
	for s := range signers {
		signing.Go(func() {
			key := wallet.Dev(s)
			for i := s; i < n; i += signers {
				raw := wallet.Ethereum{
					Chain: plainChain, MaxPriorityFee: gwei, MaxFee: 100 * gwei, Gas: transferGas, Nonce: uint64(i / signers), //nolint:gosec // a small number
					Call: chain.Call{To: &all[i].to, Value: uint256.NewInt(1)},
				}.Sign(key)
				all[i].Payment = rig.Payment{Raw: raw, Hash: chain.Keccak(raw)}
			}
		})
	}
	signing.Wait()
	return all
}

// sightings are the times when payees were first seen in a block, polled from the chain itself.
type sightings struct {
	url  string
	mu   sync.Mutex
	at   map[chain.Address]time.Time
	next uint64 // next block to read
}

// sightEvery is the polling interval for blocks.
const sightEvery = 20 * time.Millisecond

// watch reads new blocks until ctx ends.
func (s *sightings) watch(ctx context.Context) {
	tick := time.NewTicker(sightEvery)
	defer tick.Stop()
	for {
		var b struct{ Transactions []struct{ To chain.Address } }
		// A missing block decodes as null and leaves b unchanged; errors are transient.
		for s.block(ctx, &b) == nil && b.Transactions != nil {
			s.see(time.Now(), b.Transactions)
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

func (s *sightings) see(now time.Time, paid []struct{ To chain.Address }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range paid {
		if _, again := s.at[p.To]; !again {
			s.at[p.To] = now
		}
	}
}

func (s *sightings) block(ctx context.Context, into any) error {
	return rig.Call(ctx, s.url, into, "eth_getBlockByNumber", "0x"+strconv.FormatUint(s.next, 16), true)
}

func (s *sightings) of(t transfer) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok = s.at[t.to]
	return at, ok
}

// unseenMost is the longest time without new sightings before waiting ends.
const unseenMost = 45 * time.Second

// all waits until each transfer has been seen, or none for unseenMost.
func (s *sightings) all(ctx context.Context, wanted []transfer) {
	tick := time.NewTicker(sightEvery)
	defer tick.Stop()
	open, since := wanted, time.Now()
	for len(open) > 0 && time.Since(since) < unseenMost {
		var left []transfer
		for _, t := range open {
			if _, ok := s.of(t); !ok {
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

// quantity requests a number from the chain.
func quantity(ctx context.Context, url, method string, of chain.Address) (uint64, error) {
	var answer string
	if err := rig.Call(ctx, url, &answer, method, of.String(), "latest"); err != nil {
		return 0, err
	}
	return strconv.ParseUint(answer, 0, 64)
}

// bill is the result of the payments on the chain.
type bill struct {
	lost   int // accepted, and not paid
	double int // paid more than once
	spare  int // nonces used without paying
}

// paid determines the payments' result on the chain: from the payees' balances, and from the
// payers' nonces.
func paid(ctx context.Context, url string, all []transfer, signers int, accepted func(transfer) bool) (b bill, err error) {
	landed := uint64(0)
	for _, t := range all {
		wei, err := quantity(ctx, url, "eth_getBalance", t.to)
		if err != nil {
			return b, err
		}
		switch {
		case wei == 0 && accepted(t):
			b.lost++
		case wei > 1:
			b.double++
		}
		landed += wei
	}
	used := uint64(0)
	for s := range signers {
		n, err := quantity(ctx, url, "eth_getTransactionCount", wallet.Dev(s).Address())
		if err != nil {
			return b, err
		}
		used += n
	}
	b.spare = int(used - landed) //nolint:gosec // each wei that came has used a nonce
	return b, nil
}
