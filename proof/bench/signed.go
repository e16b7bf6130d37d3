package main

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The series of payments: no two share a nonce key.
const (
	seriesLater = iota + 1
	seriesDue
	seriesBurst
	seriesCrew
	seriesInOrder
	seriesSteady
	seriesHerd
	seriesFleet
	seriesAnvil
)

// loads are the requests to post, signed before measuring. Every run has its own store and
// chain, so they can be reused.
type loads struct {
	singles, batches       [][]byte // requests, for much later
	fleet                  [][]byte // the same, for several replicas
	burst, inOrder, steady []rig.Payment
	crew                   []rig.Payment // like burst, for several replicas
	anvil                  []rig.Payment
}

// later is the validAfter, from now, of transactions that must not be sent yet.
const later = 30 * 24 * time.Hour

func (b *bench) sign() (l loads) {
	s := b.scale
	if b.wantsAny(sectionAccept, sectionEligible) {
		after := uint64(time.Now().Add(later).Unix())
		b.tell("signing %d transactions", s.scheduled)
		all := sign(s.scheduled, func(i int) (int, wallet.Tempo) {
			t := payment(seriesLater, i)
			t.Window.After = after
			return i, t
		})
		l.singles, l.batches = requests(all[:s.oneByOne], 1), requests(all[s.oneByOne:], batchSize)
	}
	if b.wants(sectionReplicas) {
		after := uint64(time.Now().Add(later).Unix())
		l.fleet = requests(sign(s.fleet, func(i int) (int, wallet.Tempo) {
			t := payment(seriesFleet, i)
			t.Window.After = after
			return i, t
		}), batchSize)
		l.crew = sign(s.crew, independent(seriesCrew))
	}
	if b.wants(sectionDeliver) {
		l.burst = sign(s.payments, independent(seriesBurst))
		l.inOrder = sign(s.payments, func(i int) (int, wallet.Tempo) {
			t := payment(seriesInOrder, i%s.senders)
			t.Nonce = uint64(i / s.senders)
			return i % s.senders, t
		})
	}
	if b.wants(sectionAnvil) {
		l.anvil = sign(s.anvil, independent(seriesAnvil))
	}
	if b.wantsAny(sectionSteady, sectionAnvil) {
		l.steady = sign(s.rate*s.steadyFor, independent(seriesSteady))
	}
	return l
}

// independent payments do not wait for each other.
func independent(series uint32) func(i int) (int, wallet.Tempo) {
	return func(i int) (int, wallet.Tempo) { return i, payment(series, i) }
}

// payment transfers one unit, on a nonce key derived from series and i.
func payment(series uint32, i int) wallet.Tempo {
	key := chain.NonceKey{31: 1}
	binary.BigEndian.PutUint32(key[8:], series)
	binary.BigEndian.PutUint32(key[16:], uint32(i)) //nolint:gosec // a small number
	to := chain.Address{0: 0x77, 19: 1}
	return wallet.Tempo{NonceKey: key, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)}}
}

// sign signs n transactions on all processors. The function returns the account that signs the
// i-th (modulo the number of accounts), and its content.
func sign(n int, what func(i int) (account int, t wallet.Tempo)) []rig.Payment {
	keys := make([]wallet.Key, wallet.Devs)
	for i := range keys {
		keys[i] = wallet.Dev(i)
	}
	signed := make([]rig.Payment, n)
	var signing sync.WaitGroup
	for at := range slices.Chunk(indices(n), max(n/runtime.GOMAXPROCS(0), 1)) {
		signing.Go(func() {
			for _, i := range at {
				account, t := what(i)
				signed[i] = rig.Pay(keys[account%len(keys)], t)
			}
		})
	}
	signing.Wait()
	return signed
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
