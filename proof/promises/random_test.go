package promises_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// model is a service that keeps every promise, on a chain that forks. Its histories contain no
// violation.
type model struct {
	*script
	t     *rapid.T
	notes []note
	state map[string]*modelled
	fork  int
	head  uint64
	final uint64
	in    map[uint64][]note // by height, of the canonical branch
}

type modelled struct {
	note
	attempt          int
	block            chain.Block // of its verdict
	verdict          tx.Status
	canceled, sealed bool
	erased           bool
	taken            bool
	sentAt           time.Time
	status           tx.Status
}

func newModel(t *rapid.T) *model {
	m := &model{script: newScript(promises.Settings{Grace: 2 * time.Second}), t: t, state: map[string]*modelled{}, in: map[uint64][]note{}}
	m.block()
	return m
}

func (m *model) blockAt(n uint64) chain.Block {
	b, _ := m.ledger.At(n)
	return b
}

// block adds the next block, with some of the transactions that nodes have accepted.
func (m *model) block() {
	m.head++
	b := blockOf(m.head, fmt.Sprint("branch", m.fork))
	b.Time = uint64(m.at.Unix())
	var in []note
	for _, n := range m.notes {
		s := m.state[n.name]
		open := n.before == 0 || b.Time < uint64(epoch.Unix())+n.before
		next, _ := m.ledger.Next(n.sequence())
		beside := slices.ContainsFunc(in, func(o note) bool { return o.sequence() == n.sequence() })
		if s.taken && open && n.nonce == next && !beside && rapid.Bool().Draw(m.t, "mined "+n.name) {
			in = append(in, n)
		}
	}
	m.in[m.head] = in
	m.mine(b, in...)
}

// used reports whether the chain has used a nonce.
func (m *model) used(n note) bool {
	next, ok := m.ledger.Next(n.sequence())
	return ok && next > n.nonce
}

func (m *model) step() {
	m.later(time.Duration(rapid.IntRange(1, 2000).Draw(m.t, "ms")) * time.Millisecond)
	switch rapid.SampledFrom([]string{"accept", "send", "send", "block", "block", "reorg", "watch", "watch", "cancel", "erase", "read"}).Draw(m.t, "what") {
	case "accept":
		if len(m.notes) < 12 {
			m.fresh()
		}
	case "send":
		m.some(func(s *modelled) {
			if s.verdict == "" && !s.canceled && m.at.Sub(s.sentAt) >= 250*time.Millisecond && (s.before == 0 || m.at.Before(epoch.Add(time.Duration(s.before)*time.Second))) {
				s.attempt++
				m.took(s.note, s.attempt)
				s.taken, s.sentAt, s.status = true, m.at, tx.StatusBroadcasting
			}
		})
	case "block":
		m.block()
	case "reorg":
		m.reorg()
	case "watch":
		m.watch()
	case "cancel":
		m.some(func(s *modelled) {
			if !s.canceled && !s.sealed {
				s.canceled = true
				if s.verdict == "" {
					s.status = tx.StatusCanceled
				}
				m.log(s.note, tx.CanceledLocally{Verdict: s.verdict})
			}
		})
	case "erase":
		m.some(func(s *modelled) {
			if !s.erased && (s.sealed || s.canceled) {
				s.erased = true
				m.log(s.note, tx.PayloadErased{})
			}
		})
	case "read":
		m.some(func(s *modelled) { m.read(s.note, s.status) })
	}
}

// end announces a verdict, as reported to the owner.
func (s *modelled) end(verdict tx.Status, b chain.Block) {
	s.verdict, s.block = verdict, b
	if verdict == tx.StatusExecuted || !s.canceled {
		s.status = verdict
	}
}

func (m *model) fresh() {
	i := len(m.notes)
	n := note{name: fmt.Sprint("note", i), sender: byte(rapid.IntRange(1, 3).Draw(m.t, "sender")), key: 1}
	n.nonce = uint64(rapid.IntRange(0, 1).Draw(m.t, "nonce"))
	if rapid.Bool().Draw(m.t, "expires") {
		n.before = uint64(m.at.Unix()-epoch.Unix()) + uint64(rapid.IntRange(1, 20).Draw(m.t, "window"))
	}
	m.notes = append(m.notes, n)
	m.state[n.name] = &modelled{note: n, status: tx.StatusQueued}
	m.accept(n)
	m.submitted(n)
}

func (m *model) some(do func(*modelled)) {
	if len(m.notes) > 0 {
		do(m.state[rapid.SampledFrom(m.notes).Draw(m.t, "which").name])
	}
}

// reorg replaces blocks that are not final.
func (m *model) reorg() {
	if m.head <= m.final+1 {
		return
	}
	to := uint64(rapid.IntRange(int(m.final), int(m.head)-1).Draw(m.t, "to"))
	m.fork++
	was := m.head
	m.ledger.Rewind(to)
	for m.head = to; m.head < was; {
		m.block()
	}
}

// watch is a watcher's full work on a new head.
func (m *model) watch() {
	for _, n := range m.notes {
		s := m.state[n.name]
		if s.verdict != "" && !s.sealed {
			if at := m.blockAt(s.block.Number); at.Hash != s.block.Hash {
				m.log(n, tx.Reorged{Was: s.block, Now: at, Unwanted: s.canceled})
				if s.verdict, s.status = "", tx.StatusBroadcasting; s.canceled {
					s.status = tx.StatusCanceled
				}
			}
		}
		receipt, mined := m.ledger.Receipt(n.hash())
		head := m.blockAt(m.head)
		switch {
		case s.sealed:
		case mined && s.verdict != tx.StatusExecuted:
			s.end(tx.StatusExecuted, receipt.Block)
			m.log(n, tx.Mined{Receipt: receipt})
		case s.verdict != "" || mined:
		case m.used(n):
			s.end(tx.StatusStale, head)
			m.log(n, tx.StaleByNonce{Block: head, Current: n.nonce + 1})
		case n.before != 0 && head.Time >= uint64(epoch.Unix())+n.before:
			s.end(tx.StatusExpired, head)
			m.log(n, tx.Expired{Block: head})
		}
	}
	if m.head > 2 {
		m.final = max(m.final, m.head-2)
		m.ledger.Finalize(m.final)
	}
	for _, n := range m.notes {
		s := m.state[n.name]
		if s.verdict != "" && !s.sealed && s.block.Number <= m.final {
			s.sealed = true
			m.log(n, tx.Finalized{Verdict: s.verdict, Block: s.block, By: m.blockAt(m.final)})
		}
	}
}

// For any history of a service that keeps its promises, the judge finds nothing.
func TestNothingToFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.step()
		}
		m.finish(promises.End{})
		for _, v := range m.found {
			t.Error(v)
		}
	})
}

// defect is one error of a service. do returns false if the history gives no occasion for it.
type defect struct {
	breaks promises.Number
	do     func(m *model) bool
}

// with calls do for the first transaction that fits.
func with(fits func(m *model, s *modelled) bool, do func(m *model, s *modelled)) func(*model) bool {
	return func(m *model) bool {
		for _, n := range m.notes {
			if s := m.state[n.name]; fits(m, s) {
				do(m, s)
				return true
			}
		}
		return false
	}
}

func isOpen(_ *model, s *modelled) bool  { return s.verdict == "" && !s.canceled }
func isEnded(_ *model, s *modelled) bool { return s.sealed }
func isAny(*model, *modelled) bool       { return true }

func isAnnounced(m *model, s *modelled) bool {
	return s.verdict != "" && !s.sealed && !s.canceled && m.blockAt(s.block.Number).Hash == s.block.Hash && !m.ledger.Left(s.block.Hash)
}

func defects() map[string]defect {
	stranger := note{name: "stranger", sender: 9, key: 9}
	foreign := blockOf(1, "foreign")
	return map[string]defect{
		"acknowledged and lost": {promises.P1, func(m *model) bool { m.submitted(stranger); return true }},
		"bytes gone too soon":   {promises.P2, with(isOpen, func(m *model, s *modelled) { m.log(s.note, tx.PayloadErased{}) })},
		"accepted again":        {promises.P3, with(isAny, func(m *model, s *modelled) { m.accept(s.note) })},
		"sent before written":   {promises.P8, func(m *model) bool { m.send(stranger); return true }},
		"other bytes": {promises.P9, func(m *model) bool {
			a := stranger.accepted(m.at)
			a.Sender = chain.Address{8}
			m.log(stranger, a)
			m.send(stranger)
			return true
		}},
		"a verdict that is not true": {promises.P11, with(func(m *model, s *modelled) bool { return isOpen(m, s) && !m.used(s.note) }, func(m *model, s *modelled) {
			m.log(s.note, minedIn(foreign), tx.Finalized{Verdict: tx.StatusExecuted, Block: foreign, By: blockOf(9, "foreign")})
		})},
		"an end that is not last":     {promises.P12, with(isEnded, func(m *model, s *modelled) { m.log(s.note, tx.Mined{}) })},
		"un-mined for no reason":      {promises.P13, with(isAnnounced, func(m *model, s *modelled) { m.log(s.note, tx.Reorged{Was: s.block, Now: foreign}) })},
		"un-mined and given up":       {promises.P14, with(lostIts, func(m *model, s *modelled) { m.log(s.note, tx.Reorged{Was: s.block, Now: foreign, Unwanted: true}) })},
		"sent when its window closed": {promises.P15, with(expires, func(m *model, s *modelled) { m.later(time.Hour); m.send(s.note) })},
		"a flood": {promises.P17, with(isOpenForever, func(m *model, s *modelled) {
			m.later(time.Second)
			for range 6 {
				m.send(s.note)
			}
		})},
		"sent after the cancel": {promises.P23, with(func(_ *model, s *modelled) bool { return s.canceled && s.before == 0 }, func(m *model, s *modelled) {
			m.later(time.Minute)
			m.send(s.note)
		})},
		"not found": {promises.P24, with(isAny, func(m *model, s *modelled) { m.later(1); m.read(s.note, "") })},
		"an effect twice": {promises.P25, with(isAny, func(m *model, s *modelled) {
			m.versions[tx.Stream(testChain, s.hash())]++
			m.log(s.note, tx.GroupDoubted{})
		})},
		"turned away without a word": {promises.P27, func(m *model) bool {
			m.call(promises.Call{Kind: promises.Submit, Result: promises.Refused, Overload: true})
			return true
		}},
		"an event that is not known": {promises.P30, with(isAny, func(m *model, s *modelled) {
			m.record(tx.Stream(testChain, s.hash()), "tx.teleported.v1", []byte("{}"))
		})},
	}
}

func isOpenForever(m *model, s *modelled) bool { return isOpen(m, s) && s.before == 0 }

func expires(m *model, s *modelled) bool { return isOpen(m, s) && s.before != 0 }

// lostIts reports whether a verdict's block left the chain without a recorded reorg.
func lostIts(m *model, s *modelled) bool {
	return s.verdict != "" && !s.sealed && !s.canceled && m.ledger.Left(s.block.Hash) && m.blockAt(s.block.Number).Hash != s.block.Hash
}

// A single defect in a history is found, with the right promise.
func TestOneDefectIsNamed(t *testing.T) {
	for name, d := range defects() {
		t.Run(name, func(t *testing.T) {
			const enough, rounds = 5, 10 // a history may give no occasion
			tried := 0
			check := func(t *rapid.T) {
				m := newModel(t)
				for range rapid.IntRange(20, 60).Draw(t, "steps") {
					m.step()
				}
				if !d.do(m) {
					return
				}
				tried++
				m.finish(promises.End{})
				if len(m.found) == 0 {
					t.Fatalf("%s was not found", d.breaks)
				}
				for _, v := range m.found {
					if v.Promise != d.breaks {
						t.Errorf("want %s, found %s", d.breaks, v)
					}
				}
			}
			for range rounds {
				if rapid.Check(t, check); tried >= enough || t.Failed() {
					break
				}
			}
			if tried < enough {
				t.Errorf("the history gave only %d occasions", tried)
			}
		})
	}
}
