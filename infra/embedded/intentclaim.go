package embedded

import (
	"cmp"
	"context"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Claim gives intents to a holder, as chosen by [intent.Claim.Choose]. A claim from before the
// clock was set back lapses.
func (s *Intents) Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error) {
	return write(ctx, s.work.file, "claim intents", func(conn *sqlite.Conn) ([]intent.Claimed, error) {
		l := &intentClaim{Claim: c, conn: conn, now: s.work.now(), lane: laneOf(c.Lane)}
		return l.run()
	})
}

// intentClaim is the state of one call of Claim.
type intentClaim struct {
	intent.Claim
	conn *sqlite.Conn
	now  time.Time
	lane []byte

	found []intent.Entry
}

func (l *intentClaim) run() ([]intent.Claimed, error) {
	err := exec(l.conn, `UPDATE intents SET lane = NULL, holder = NULL, claimed_until = NULL
		WHERE holder IS NOT NULL AND (claimed_until <= ? OR claimed_until > ?)`, micros(l.now), micros(l.now.Add(l.TTL+clockSlack)))
	if err != nil {
		return nil, err
	}
	if err := awaken(l.conn, l.now.Unix()); err != nil {
		return nil, err
	}
	if err := l.find(); err != nil {
		return nil, err
	}
	chosen := l.Choose(l.found)
	for _, c := range chosen {
		err := exec(l.conn, "UPDATE intents SET lane = ?, holder = ?, claimed_until = ? WHERE intent = ?", l.lane, l.Holder, micros(l.now.Add(l.TTL)), c.ID[:])
		if err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// find looks up the candidates: each client's first intents, the ordering groups that they
// head, and the groups in this lane.
func (l *intentClaim) find() error {
	heads := map[string][]intent.Entry{}
	for _, wants := range l.Names() {
		for _, key := range l.Keys() {
			if err := l.heads(wants, keyColumn(key), heads); err != nil {
				return err
			}
		}
	}
	for _, of := range heads {
		slices.SortFunc(of, func(a, b intent.Entry) int { return cmp.Compare(a.Position, b.Position) })
	}
	groups, err := l.names("SELECT DISTINCT in_row FROM intents INDEXED BY intents_lanes WHERE chain = ? AND lane = ? AND in_row IS NOT NULL", int64(l.Lane.Chain), l.lane)
	if err != nil {
		return err
	}
	for _, h := range fair.Deal(l.Turn, l.Limit, heads) { // if a head has no turn, the intents behind it have none
		if h.Row.Order == "" {
			l.found = append(l.found, h)
		} else {
			groups = append(groups, h.Row.Name())
		}
	}
	return l.follow(groups)
}

// elsewhere is true for an ordering group with an intent in another lane or claimed by another
// holder.
const elsewhere = `EXISTS (SELECT 1 FROM intents o INDEXED BY intents_pinned WHERE o.chain = ?1 AND o.in_row = i.in_row AND o.lane IS NOT NULL AND (o.lane <> ?2 OR o.holder <> ?3))`

// heads finds each client's first waiting intents of a kind that head their group or have none.
func (l *intentClaim) heads(wants string, key []byte, heads map[string][]intent.Entry) error {
	const client = "SELECT client FROM intents INDEXED BY intents_heads WHERE chain = ? AND wants = ? AND nonce_key = ? AND head = 1 AND lane IS NULL "
	next, err := l.names(client+"ORDER BY client LIMIT 1", int64(l.Lane.Chain), wants, key)
	for err == nil && len(next) > 0 {
		var found []intent.Entry
		found, err = l.ask("intents_heads", `chain = ?1 AND wants = ?4 AND nonce_key = ?5 AND head = 1 AND lane IS NULL AND client = ?8 AND pos > ?7 AND (in_row IS NULL OR NOT `+elsewhere+`)
			ORDER BY pos LIMIT 0 + ?6`, int64(l.Lane.Chain), l.lane, l.Holder, wants, key, int64(l.Limit), int64(l.After), next[0])
		if err != nil {
			return err
		}
		heads[next[0]] = append(heads[next[0]], found...)
		next, err = l.names(client+"AND client > ? ORDER BY client LIMIT 1", int64(l.Lane.Chain), wants, key, next[0])
	}
	return err
}

// follow finds waiting intents of ordering groups, as far as [intent.Claim.Followers] allows. A
// group has none if an intent of it is elsewhere, or if its first waiting intent does not fit.
func (l *intentClaim) follow(groups []string) error {
	known := map[string]bool{}
	var firsts []intent.Entry
	for _, name := range groups {
		if known[name] {
			continue
		}
		known[name] = true
		first, err := l.waiting(name, 1)
		if err != nil {
			return err
		}
		if len(first) > 0 && !first[0].Asleep && l.Fits(first[0].Waiting) {
			firsts = append(firsts, first[0])
		}
	}
	slices.SortFunc(firsts, func(a, b intent.Entry) int { return cmp.Compare(a.Position, b.Position) })
	ahead := map[string]int{}
	for _, f := range firsts {
		most := l.Followers(ahead[f.Client])
		ahead[f.Client]++
		switch most {
		case 0:
			continue
		case 1:
			l.found = append(l.found, f)
			continue
		}
		waiting, err := l.waiting(f.Row.Name(), most)
		if err != nil {
			return err
		}
		l.found = append(l.found, waiting...)
	}
	return nil
}

// waiting returns an ordering group's first waiting intents, or none if an intent of the group is
// elsewhere.
func (l *intentClaim) waiting(name string, most int) ([]intent.Entry, error) {
	return l.ask("intents_waiting", "chain = ?1 AND in_row = ?4 AND lane IS NULL AND NOT "+elsewhere+" ORDER BY pos LIMIT 0 + ?5",
		int64(l.Lane.Chain), l.lane, l.Holder, name, int64(most))
}

// behind selects the intent just before another one in its ordering group.
const behind = `CASE WHEN head = 0 THEN (SELECT b.intent FROM intents b INDEXED BY intents_row
	WHERE b.chain = i.chain AND b.in_row = i.in_row AND b.pos < i.pos ORDER BY b.pos DESC LIMIT 1) END`

// ask reads intents by a given index: the planner, which does not know the row counts, would
// rather scan all intents of a lane.
//
// A bound limit is written LIMIT 0 + ?: SQLite uses the value of LIMIT ? in its plan, and
// recompiles the statement whenever the parameter is bound, even to the same value. Because of
// that, a turn of a lane with 40,000 ordering groups took 177 ms; it takes 36 ms without.
func (l *intentClaim) ask(index, where string, args ...any) (found []intent.Entry, err error) {
	return scanIntents(l.conn, "SELECT "+intentColumns+", "+behind+" FROM intents i INDEXED BY "+index+" WHERE "+where, args...)
}

const intentColumns = `intent, pos, chain, client, wants, nonce_key, in_row, deadline, lane, holder, claimed_until, max_fee, size, not_before, asleep`

func intents(conn *sqlite.Conn, where string, args ...any) ([]intent.Entry, error) {
	return scanIntents(conn, "SELECT "+intentColumns+", NULL FROM intents WHERE "+where, args...)
}

// scanIntents reads intentColumns, and the intent before it in its ordering group.
func scanIntents(conn *sqlite.Conn, text string, args ...any) (found []intent.Entry, err error) {
	var bad error
	err = query(conn, text, func(s *sqlite.Stmt) bool {
		var e intent.Entry
		s.ColumnBytes(0, e.ID[:])
		e.Position, e.Chain, e.Client, e.Deadline = eventlog.Position(s.ColumnInt64(1)), chain.ID(s.ColumnInt64(2)), s.ColumnText(3), uint64(s.ColumnInt64(7))
		e.Key, e.Row = keyOf(columnBytes(s, 5)), intent.ParseRow(e.Chain, s.ColumnText(6))
		e.Lane, e.Holder, e.Until = laneAt(e.Chain, columnBytes(s, 8)), s.ColumnText(9), timeAt(s, 10)
		e.Size = s.ColumnInt(12)
		e.NotBefore, e.Asleep = uint64(s.ColumnInt64(13)), s.ColumnBool(14) //nolint:gosec // stored from a time
		s.ColumnBytes(15, e.Behind[:])
		var unpaid error
		e.From, bad = intent.ParseFrom(s.ColumnText(4))
		e.MaxFee, unpaid = feeOf(s.ColumnText(11))
		bad = cmp.Or(bad, unpaid)
		found = append(found, e)
		return bad == nil
	}, args...)
	return found, cmp.Or(err, bad)
}

func (l *intentClaim) names(text string, args ...any) (names []string, err error) {
	err = query(l.conn, text, func(s *sqlite.Stmt) bool {
		names = append(names, s.ColumnText(0))
		return true
	}, args...)
	return names, err
}
