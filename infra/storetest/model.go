package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// againstModel applies random changes, leases and reports to a queue and to a simple model of
// it, and compares all rows after every step.
func againstModel(t *testing.T, q *queue) {
	for seed := range uint64(3) {
		m := &model{q: q, draw: rand.New(rand.NewPCG(seed, 0)), first: 1000 * int(seed), rows: map[int]*modelRow{}}
		for range 150 {
			m.step()
			m.compare(t)
			if t.Failed() {
				t.Fatalf("seed %d, after: %v", seed, m.did)
			}
		}
		for n := range m.rows { // otherwise the next model would lease rows that it does not know
			q.apply(closed(n))
		}
	}
}

const modelRows = 60

type model struct {
	q     *queue
	draw  *rand.Rand
	first int // number of the first row
	rows  map[int]*modelRow
	block uint64
	did   []string
}

type modelRow struct {
	tx.Work
	holder string
	woken  bool // due now, independent of its NextAt
}

func (m *model) sequence(n int) (chain.Address, chain.NonceKey) {
	sender := address(1_000_000 + m.first + n%3)
	if n%3 == 2 {
		return sender, chain.ExpiringKey
	}
	return sender, chain.NonceKey{}
}

func (m *model) step() {
	m.did = nil
	switch m.draw.IntN(4) {
	case 0:
		m.lease()
	case 1:
		m.done()
	default:
		var changes []tx.Change
		for range 1 + m.draw.IntN(12) {
			if c, ok := m.change(); ok {
				changes = append(changes, c)
			}
		}
		m.q.apply(changes...)
	}
	m.park()
}

// change makes one valid change to a random row, and applies it to the model.
func (m *model) change() (tx.Change, bool) {
	n := m.first + m.draw.IntN(modelRows)
	row := m.rows[n]
	if row == nil {
		return m.open(n), true
	}
	m.block++
	b := block(m.block)
	switch draw := m.draw.IntN(7); {
	case draw == 6:
		m.confirm(row)
		m.note("confirm", n)
		return confirm(n), true
	case draw == 0:
		delete(m.rows, n)
		m.wake(row)
		m.note("close", n)
		return closed(n), true
	case draw == 1:
		m.end(row, tx.Sealed, b)
		m.note("seal", n)
		return seal(n, b), true
	case draw == 2 && row.Phase == tx.Open:
		row.Phase, row.holder = tx.Watched, ""
		m.note("watch", n)
		return watched(n), true
	case draw == 3 && row.Phase == tx.Open:
		a := tx.Attempted{Number: m.draw.IntN(6), At: m.past(), NextAt: m.someTime(), Note: fmt.Sprint("recorded ", m.block)}
		if a.Number > row.Attempts {
			row.Attempts, row.SentAt, row.NextAt, row.Note = a.Number, a.At, a.NextAt, a.Note
			row.woken = false
		}
		m.note("attempt", n)
		return on(n, func(c *tx.Change) { c.Attempt = &a }), true
	case draw > 3 && (row.Phase == tx.Open || row.Phase == tx.Watched):
		m.end(row, tx.Announced, b)
		m.note("announce", n)
		return announce(n, b), true
	case draw > 3:
		at, to := m.someTime(), []tx.Phase{tx.Open, tx.Open, tx.Watched}[m.draw.IntN(3)]
		row.Phase, row.Verdict, row.Block, row.holder = to, "", chain.Block{}, ""
		row.NextAt = tx.Reopened{At: at}.Due(row.Work)
		row.woken = false
		m.note("reopen", n)
		return reopen(n, to, at), true
	}
	return tx.Change{}, false
}

func (m *model) note(what string, n int) { m.did = append(m.did, fmt.Sprint(what, " ", n)) }

func (m *model) open(n int) tx.Change {
	sender, key := m.sequence(n)
	w := m.q.row(n, sender, m.draw.Uint64()>>m.draw.IntN(64))
	w.NonceKey, w.NextAt = key, m.someTime()
	w.Client, w.Claimed, w.Bytes = []string{"", "a", "b"}[m.draw.IntN(3)], m.draw.IntN(4) == 0, m.draw.IntN(1000)
	m.rows[n] = &modelRow{Work: w}
	m.note("open", n)
	return opens(w)[0]
}

// place is the key of a row's sequence. A row with an unconfirmed sender shares a separate
// place with its client's other such rows.
func (m *model) place(row *modelRow) string {
	if row.Claimed && row.Verdict != tx.StatusExecuted && !row.NonceKey.IsExpiring() {
		return "claimed by " + row.Client
	}
	return fmt.Sprint(row.Sender, row.NonceKey)
}

func (m *model) confirm(row *modelRow) {
	if !row.Claimed {
		return
	}
	row.Claimed = false
	if row.Phase == tx.Open && row.WaitNonce != 0 {
		row.WaitNonce, row.woken = 0, true
	}
}

func (m *model) end(row *modelRow, phase tx.Phase, b chain.Block) {
	row.Phase, row.Verdict, row.Block, row.holder = phase, tx.StatusExecuted, b, ""
	m.wake(row)
}

// wake makes due the rows that wait for a nonce in a row's sequence.
func (m *model) wake(by *modelRow) {
	if strings.HasPrefix(m.place(by), "claimed") {
		return
	}
	for _, row := range m.rows {
		if row.Phase == tx.Open && row.WaitNonce != 0 && m.place(row) == m.place(by) {
			row.woken = true
		}
	}
}

// someTime is well before or well after now, to the microsecond.
func (m *model) someTime() time.Time {
	at := m.q.clock.Now().UTC().Truncate(time.Microsecond).Add(time.Duration(m.draw.IntN(1e6)) * time.Microsecond)
	if m.draw.IntN(2) == 0 {
		return at.Add(-time.Hour)
	}
	return at.Add(time.Hour)
}

func (m *model) past() time.Time {
	return m.q.clock.Now().UTC().Truncate(time.Microsecond).Add(-time.Minute)
}

// park sets parked by the rule as specified.
func (m *model) park() {
	for _, row := range m.rows {
		lower := 0
		for _, other := range m.rows {
			if other.Phase == tx.Open && m.place(other) == m.place(row) && other.Nonce < row.Nonce {
				lower++
			}
		}
		row.Parked = row.Phase == tx.Open && !row.NonceKey.IsExpiring() && lower >= m.q.window
	}
}

func (m *model) lease() {
	holder := []string{"a", "b"}[m.draw.IntN(2)]
	due := map[chain.Hash]*modelRow{}
	now := m.q.clock.Now()
	for _, row := range m.rows {
		if row.Phase == tx.Open && !row.Parked && row.holder == "" && (row.woken || row.NextAt.Before(now)) {
			due[row.Hash] = row
		}
	}
	limit := 1 + m.draw.IntN(10)
	got := m.q.lease(holder, 24*time.Hour, limit)
	for _, w := range got {
		row := due[w.Hash]
		if row == nil {
			m.q.t.Errorf("leased %+v, which is not due", w)
			continue
		}
		row.holder = holder
	}
	if len(got) < min(limit, len(due)) {
		m.q.t.Errorf("leased %d rows, %d are due", len(got), len(due))
	}
	m.fair(due, got)
	m.note("lease by "+holder, len(got))
}

// fair checks that no client got fewer than its due rows while another got more by two or more.
func (m *model) fair(due map[chain.Hash]*modelRow, got []tx.Work) {
	has, took := map[string]int{}, counted(got)
	for _, row := range due {
		has[row.Client]++
	}
	for client, n := range has {
		for other, more := range took {
			if took[client] < n && more > took[client]+1 {
				m.q.t.Errorf("client %q was leased %d of %d due rows, client %q %d", client, took[client], n, other, more)
			}
		}
	}
}

func (m *model) done() {
	holder := []string{"a", "b"}[m.draw.IntN(2)]
	var said []tx.Done
	for _, n := range slices.Sorted(maps.Keys(m.rows)) {
		row := m.rows[n]
		if row.holder == "" || m.draw.IntN(3) == 0 {
			continue
		}
		d := tx.Done{
			Chain: 1, Hash: row.Hash, Attempts: row.Attempts + m.draw.IntN(2), NextAt: m.someTime(),
			Note: fmt.Sprint("said ", n), SentAt: m.past(),
		}
		if !row.NonceKey.IsExpiring() { // its nonces form no sequence, so nothing waits in it
			d.WaitNonce = uint64(m.draw.IntN(3))
		}
		said = append(said, d)
		if row.holder != holder {
			continue
		}
		row.Attempts, row.NextAt, row.Note, row.SentAt, row.WaitNonce = d.Attempts, d.NextAt, d.Note, d.SentAt, d.WaitNonce
		row.holder, row.woken = "", false
		m.note("done", n)
	}
	check(m.q.t, m.q.Done(soon(m.q.t), holder, said))
}

// compare compares all rows, and copies the fields that the rules leave open.
func (m *model) compare(t *testing.T) {
	t.Helper()
	var hashes []chain.Hash
	for n := range modelRows {
		hashes = append(hashes, hash(m.first+n))
	}
	got, err := m.q.Find(soon(t), 1, hashes)
	check(t, err)
	byHash := map[chain.Hash]tx.Work{}
	for _, w := range got {
		byHash[w.Hash] = w
	}
	if len(byHash) != len(m.rows) {
		t.Errorf("%d rows, the model has %d", len(byHash), len(m.rows))
	}
	now := m.q.clock.Now().Add(clockSlack)
	for _, row := range m.rows {
		w := byHash[row.Hash]
		switch {
		case row.woken && w.NextAt.After(now):
			t.Errorf("row %s was woken and is due %s", w.Hash, w.NextAt)
		case row.woken:
			row.NextAt = w.NextAt
		}
		if row.Phase != tx.Open { // these fields are unused then
			row.WaitNonce, row.NextAt = w.WaitNonce, w.NextAt
		}
		if w.Parked && row.WaitNonce == 0 {
			w.WaitNonce = 0 // parkedWait checks this field
		}
		row.WaitSince = w.WaitSince
		if diff := cmp.Diff(row.Work, w); diff != "" {
			t.Error(diff)
		}
	}
}
