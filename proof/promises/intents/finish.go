package intents

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Finish judges a finished history. chains returns the truth about each chain, nil if unknown.
// quiet means that all faults are over, so that everything was reported.
func (j *Judge) Finish(chains func(chain.ID) promises.Chain, quiet bool) []promises.Violation {
	for _, id := range slices.SortedFunc(maps.Keys(j.asked), byID) {
		l, of := j.lives[id], eventlog.Recorded{Stream: intent.Stream(id)}
		j.cases.Add(promises.P1)
		switch {
		case l == nil || l.request.ID.IsZero():
			j.broken(promises.P1, of, "a client got an acknowledgement of it, but the log does not have it")
		case l.request.Digest != j.asked[id]:
			j.broken(promises.P3, of, "a client got an acknowledgement of another request")
		}
	}
	for _, l := range j.sorted() {
		if c := chains(l.request.Request.Chain); c != nil {
			j.against(l, c, quiet)
		}
	}
	return j.tell()
}

// against compares an intent with the chain: it was executed at most once (P10), and the reported
// state is true (P22).
func (j *Judge) against(l *life, c promises.Chain, quiet bool) {
	of := eventlog.Recorded{Stream: intent.Stream(l.id), Position: l.position}
	var in []chain.Hash
	var receipt chain.Receipt
	done := 0
	for _, a := range l.attempts {
		r, mined := c.Receipt(a.Hash)
		if !mined || slices.Contains(l.filled, a.Hash) { // which is not reported
			continue
		}
		in, receipt = append(in, a.Hash), r
		if a.Kind != intent.NoOp && r.Status == 1 {
			done++
		}
	}
	if done > 1 {
		j.broken(promises.P10, of, "the chain has executed %d of its attempts: %v", done, in)
	}
	if !quiet {
		return
	}
	told := l.view.Receipt
	switch {
	case len(in) == 0 && told != nil:
		j.broken(promises.P22, of, "block %d is announced to contain it, but the chain's block does not", told.Block.Number)
	case len(in) > 0 && (told == nil || told.Block.Hash != receipt.Block.Hash || told.Status != receipt.Status):
		j.broken(promises.P22, of, "block %d contains %s, which differs from the announced state", receipt.Block.Number, in[0])
	}
	for _, b := range l.view.Confirmations {
		if at, ok := c.At(b.Number); !ok || at.Hash != b.Hash {
			j.broken(promises.P22, of, "block %d, %s, is announced as a confirmation, but the chain has another block", b.Number, b.Hash)
		}
	}
}

func byID(a, b chain.IntentID) int { return bytes.Compare(a[:], b[:]) }

// sorted returns the lives in order of their first events.
func (j *Judge) sorted() []*life {
	return slices.SortedFunc(maps.Values(j.lives), func(a, b *life) int { return cmp.Compare(a.position, b.position) })
}
