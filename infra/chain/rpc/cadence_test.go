package rpc

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// metronome is a chain whose nodes learn of blocks at a pace, some late.
type metronome struct {
	start time.Time
	pace  time.Duration
	known []time.Time // when each block becomes known
}

func newMetronome(t *rapid.T, blocks int) *metronome {
	m := &metronome{start: time.Unix(1_800_000_000, 0), pace: rapid.SampledFrom([]time.Duration{
		400 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 12 * time.Second,
	}).Draw(t, "pace")}
	phase := time.Duration(rapid.Int64Range(0, int64(m.pace)).Draw(t, "phase"))
	for i := range blocks {
		late := time.Duration(rapid.Int64Range(0, int64(m.pace/50)).Draw(t, "late"))
		m.known = append(m.known, m.start.Add(phase+time.Duration(i)*m.pace+late))
	}
	return m
}

// newest is the newest block known at a time; ok is false if there is none.
func (m *metronome) newest(at time.Time) (b chain.Block, ok bool) {
	for i, known := range m.known {
		if known.After(at) {
			break
		}
		b, ok = m.block(i), true
	}
	return b, ok
}

func (m *metronome) block(i int) chain.Block {
	b := chain.Block{Number: uint64(i) + 1, Time: uint64(m.start.Add(time.Duration(i) * m.pace).Unix())} //nolint:gosec // both are small
	binary.BigEndian.PutUint64(b.Hash[:], b.Number)
	return b
}

// ask asks when the cadence says, until a time. It returns how late each block was seen, by
// number, and the number of questions.
func (m *metronome) ask(c *cadence, now *time.Time, until time.Time) (late map[uint64]time.Duration, questions int) {
	late = map[uint64]time.Duration{}
	for now.Before(until) {
		if b, ok := m.newest(*now); ok {
			c.saw(*now, b)
			if _, met := late[b.Number]; !met {
				late[b.Number] = now.Sub(m.known[b.Number-1])
			}
		}
		questions++
		*now = now.Add(c.wait())
	}
	return late, questions
}

// Once the pace is known, a block is seen within a few steps, for about two questions. On a
// slow chain the poll's questions come on top.
func TestCadence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const poll, blocks, learnt = time.Second, 200, 40
		m := newMetronome(t, blocks)
		now := m.start
		c := newCadence(poll, func() time.Time { return now })
		end := m.known[blocks-1].Add(m.pace / 2)
		m.ask(c, &now, m.known[learnt])
		late, questions := m.ask(c, &now, end)
		sum := time.Duration(0)
		for number, by := range late {
			if by > poll {
				t.Errorf("block %d is met %s late", number, by)
			}
			sum += by
		}
		if mean := sum / time.Duration(len(late)); mean > 3*c.step() {
			t.Errorf("blocks every %s are met %s late on average, a step is %s", m.pace, mean, c.step())
		}
		most := float64(end.Sub(m.known[learnt]))/float64(poll) + 2.2*float64(blocks-learnt)
		if float64(questions) > most {
			t.Errorf("%d questions for %d blocks every %s", questions, blocks-learnt, m.pace)
		}
	})
}

// A chain that stops, or has not begun, is asked a few more times and then once per poll.
func TestCadenceOfAChainThatStops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const poll, blocks = time.Second, 50
		m := newMetronome(t, blocks)
		now := m.start
		c := newCadence(poll, func() time.Time { return now })
		m.ask(c, &now, m.known[blocks-1].Add(m.pace))
		_, questions := m.ask(c, &now, m.known[blocks-1].Add(m.pace+time.Hour))
		if questions < 3600 || questions > 3620 {
			t.Errorf("%d questions in an hour without a block", questions)
		}
	})
}

// A fork begins a new pace, and so does an endpoint that goes back in time. A chain that mines
// on demand has no pace.
func TestCadenceBeginsAnew(t *testing.T) {
	m := &metronome{start: time.Unix(1_800_000_000, 0), pace: time.Second}
	now := m.start
	c := newCadence(time.Second, func() time.Time { return now })
	for i := range 20 {
		now = now.Add(time.Second)
		c.saw(now, m.block(i))
	}
	if c.pace != time.Second {
		t.Fatalf("the pace is %s", c.pace)
	}
	fork := m.block(10)
	fork.Hash[31] = 1
	now = now.Add(time.Second)
	if c.saw(now, fork); c.pace != 0 {
		t.Errorf("the pace is %s after a fork", c.pace)
	}
	for i := range 5 {
		now = now.Add(time.Second)
		fork.Number, fork.Hash[30] = fork.Number+1, byte(i+1)
		c.saw(now, fork)
	}
	if c.pace != 0 || c.wait() > time.Second {
		t.Errorf("the pace is %s where blocks take no time, it is waited for %s", c.pace, c.wait())
	}
}
