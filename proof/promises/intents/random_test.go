package intents_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// world is one intent, decided by package intent, on a chain that forks.
type world struct {
	*script
	t      *rapid.T
	state  intent.State
	forks  int
	nonce  uint64
	hashes int
}

func (w *world) do(c intent.Command) {
	facts, err := w.state.Decide(c)
	if err != nil {
		return
	}
	for _, e := range facts {
		w.state = w.state.Evolve(e)
	}
	w.told(first, facts...)
}

// head returns the newest block's number.
func (w *world) head() uint64 { return w.ledger.Head().Number }

func (w *world) block(executed ...promises.Execution) {
	n := w.head() + 1
	b := blockOf(n, string(rune('a'+w.forks)))
	if before, ok := w.ledger.At(n - 1); ok {
		b.Parent = before.Hash
	}
	w.ledger.Add(b, executed...)
}

func (w *world) step() {
	switch rapid.SampledFrom([]string{"assign", "sign", "sign", "mine", "watch", "watch", "block", "reorg", "stop", "requeue"}).Draw(w.t, "what") {
	case "assign":
		w.nonce++
		w.do(intent.Assign{Assignment: w.state.Assignment + 1, Place: place(w.nonce), Token: 1, At: epoch})
	case "sign":
		w.hashes++
		kind := intent.Bump
		if w.state.Stop.Reason != "" {
			kind = intent.NoOp
		}
		w.do(intent.Attempt{Assignment: w.state.Assignment, Kind: kind, Hash: hashOf(w.hashes), At: epoch})
	case "mine":
		w.mine()
	case "block":
		w.block()
	case "watch":
		w.watch()
	case "reorg":
		w.forks++
		to := w.head() - min(w.head(), rapid.Uint64Range(1, 3).Draw(w.t, "deep"))
		w.ledger.Rewind(to)
		w.block()
	case "stop":
		if rapid.IntRange(0, 3).Draw(w.t, "canceled") == 0 {
			w.do(intent.Cancel{At: epoch})
		}
	case "requeue":
		w.do(intent.Requeue{Assignment: w.state.Assignment, Token: w.state.Token, Evidence: intent.Evidence{Kind: intent.Released}, At: epoch})
	}
}

// mine puts one of the attempts at the nonce into a block, if none is in the chain.
func (w *world) mine() {
	if w.state.Place == nil || len(w.state.Attempts) == 0 {
		return
	}
	for _, a := range w.state.Attempts {
		if _, in := w.ledger.Receipt(a.Hash); in {
			return
		}
	}
	a := rapid.SampledFrom(w.state.Attempts).Draw(w.t, "attempt")
	w.block(promises.Execution{Hash: a.Hash, Status: rapid.Uint64Range(0, 1).Draw(w.t, "status")})
}

// watch reports the chain's state to the intent, like a watcher on a new head.
func (w *world) watch() {
	for _, b := range w.state.Told {
		if at, ok := w.ledger.At(b.Number); ok && at.Hash != b.Hash {
			w.do(intent.LoseBlock{Was: b, Now: at, At: epoch})
			break
		}
	}
	for _, a := range w.state.Attempts {
		r, in := w.ledger.Receipt(a.Hash)
		if !in {
			continue
		}
		var list []chain.Block
		for n := r.Block.Number; n <= w.head(); n++ {
			b, _ := w.ledger.At(n)
			list = append(list, b)
		}
		w.do(intent.Announce{Hash: a.Hash, Receipt: r, Confirmations: list, Settled: len(list) >= 3, At: epoch})
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{script: newScript(), t: t}
	w.block()
	w.do(intent.Create{Request: wish(1), At: epoch})
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.step()
	}
	return w
}

// calm extends the chain beyond every announced block, and reports everything.
func (w *world) calm() {
	const above = 70 // more blocks than steps
	for w.head() < above {
		w.block()
	}
	for range len(w.state.Told) + 1 {
		w.watch()
	}
}

// For any history decided by package intent, the judge finds nothing.
func TestNothingToFind(t *testing.T) {
	ended := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.calm()
		w.finish(true)
		w.delivered()
		for _, v := range w.found {
			t.Error(v)
		}
		if w.state.End != nil {
			ended++
		}
	})
	if ended < 3 {
		t.Errorf("only %d histories came to an end", ended)
	}
}

// A single defect in a history is found, with the right promise.
func TestOneDefectIsNamed(t *testing.T) {
	for name, d := range map[string]struct {
		breaks promises.Number
		do     func(w *world) bool // returns false if the history gives no occasion
	}{
		"requested again": {promises.P3, func(w *world) bool {
			if w.state.End != nil {
				return false
			}
			w.log(first, requested(1))
			return true
		}},
		"a second place": {promises.P10, func(w *world) bool {
			if w.state.Place == nil || w.state.End != nil {
				return false
			}
			w.told(first, assigned(w.state.Sequence+1, w.state.Assignment+1, 99))
			return true
		}},
		"done again": {promises.P10, func(w *world) bool {
			if w.calm(); w.state.Status() != intent.StatusCompleted {
				return false
			}
			w.told(first, intent.Completed{Sequence: w.state.Sequence + 1, Hash: w.state.End.Hash, Block: w.state.End.Block, At: epoch})
			return true
		}},
		"a sequence left out": {promises.P22, func(w *world) bool {
			if !isSigned(w) {
				return false
			}
			a := confirmed(w.state.Sequence+2, 0, true)
			a.Hash = w.state.Mined
			w.told(first, a)
			return true
		}},
		"a fork not told of": {promises.P22, func(w *world) bool {
			if !isSigned(w) {
				return false
			}
			a := confirmed(w.state.Sequence+1, 0, false, blockOf(99, "nowhere"))
			a.Hash = w.state.Mined
			w.told(first, a)
			return true
		}},
		"a notice that got lost": {promises.P22, func(w *world) bool {
			if !isSigned(w) {
				return false
			}
			head := w.state.Told[len(w.state.Told)-1]
			next := chain.Block{Number: head.Number + 1, Hash: hashOf(-1), Parent: head.Hash}
			a := confirmed(w.state.Sequence+1, 0, false, next)
			a.Hash = w.state.Mined
			w.log(first, a)
			w.delivered()
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t)
				if !d.do(w) {
					return
				}
				tried++
				if len(w.found) == 0 {
					t.Fatalf("%s was not found", d.breaks)
				}
				for _, v := range w.found {
					if v.Promise != d.breaks {
						t.Errorf("want %s, found %s", d.breaks, v)
					}
				}
			})
			if tried < 3 {
				t.Errorf("the history gave only %d occasions", tried)
			}
		})
	}
}

// isSigned reports whether confirmations of an attempt were reported.
func isSigned(w *world) bool { return len(w.state.Told) > 0 }
