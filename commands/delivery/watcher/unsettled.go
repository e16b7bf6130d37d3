package watcher

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// unsettled are sequences in which a nonce was used and whose rivals are not all settled.
type unsettled struct {
	sequences map[chain.Sequence]bool
	last      chain.Sequence // the last one whose nonce was asked for
}

// next takes at most n of the sequences but for these, each in its turn: sequences that stay
// unsettled keep no other from being asked for.
func (u *unsettled) next(n int, except []chain.Sequence) (taken []chain.Sequence) {
	all := slices.SortedFunc(maps.Keys(u.sequences), compareSequences)
	from, found := slices.BinarySearchFunc(all, u.last, compareSequences)
	if found {
		from++
	}
	for i := range all {
		s := all[(from+i)%len(all)]
		if slices.Contains(except, s) {
			continue
		}
		if len(taken) == n {
			break
		}
		taken, u.last = append(taken, s), s
	}
	return taken
}

func compareSequences(a, b chain.Sequence) int {
	return cmp.Or(bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
}

// postpone remembers sequences whose rivals are not all settled. Beyond the bound, open rows
// are looked at when they are due, and a round through the watched rows begins at once.
func (r *run) postpone(left []chain.Sequence) {
	for _, s := range left {
		switch {
		case len(r.unsettled.sequences) < unsettledMax:
			r.unsettled.sequences[s] = true
		case !r.unsettled.sequences[s]:
			r.round.pause = 0
		}
	}
}

// readWaiting asks for the nonces of sequences in which rows wait, as a predecessor that is
// not ours may be mined without our seeing it in a block, and of unsettled sequences.
func (r *run) readWaiting(ctx context.Context, tip chain.Block) error {
	waiting, err := r.Board.Waiting(ctx, r.Chain, waitingMax)
	if err != nil {
		return err
	}
	return r.readNonces(ctx, tip, append(waiting, r.unsettled.next(2*waitingMax-len(waiting), waiting)...))
}

// readNonces asks for the nonces of sequences, and does what follows from them.
func (r *run) readNonces(ctx context.Context, tip chain.Block, sequences []chain.Sequence) error {
	if len(sequences) == 0 {
		return nil
	}
	nonces, err := r.Node.Nonces(ctx, tip, sequences)
	if err != nil {
		return fmt.Errorf("nonces: %w", err)
	}
	now := make(map[chain.Sequence]uint64, len(sequences))
	for i, s := range sequences {
		now[s] = nonces[i]
	}
	left, err := r.outrun(ctx, tip, now, now, nil)
	if err == nil {
		for _, s := range sequences {
			delete(r.unsettled.sequences, s)
		}
	}
	r.postpone(left)
	return err
}
