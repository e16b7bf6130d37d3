package embedded

import (
	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Rows that may be leased when due, first attempts and repeats, each with an index; and holds.
// All are ordered by client.
const (
	firsts = "due FROM work WHERE chain = ?1 AND phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts = 0"
	agains = "due FROM work WHERE chain = ?1 AND phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts > 0"
	// The same of further owners.
	turnFirsts = "due FROM work_owners WHERE chain = ?1 AND free = 1 AND held_since IS NULL AND attempts = 0"
	turnAgains = "due FROM work_owners WHERE chain = ?1 AND free = 1 AND held_since IS NULL AND attempts > 0"
	probes     = "until AS due FROM holds WHERE chain = ?1"
)

// ready finds the clients with due rows. Each kind finds one client after the other, each by
// one index lookup, however many rows it has.
func (l *leasing) ready() ([]tx.Ready, error) {
	tried := map[string]bool{} // clients with repeats
	soonest, err := l.look(func(kind, client string, soonest int64) error {
		due := soonest <= micros(l.now)
		if !due && kind != firsts && kind != turnFirsts { // no due time is that far away, unless the clock was set back
			err := query(l.conn, "SELECT "+kind+" AND client = ?2 ORDER BY due DESC LIMIT 1", func(s *sqlite.Stmt) bool {
				due = s.ColumnInt64(0) > micros(l.beyond)
				return false
			}, int64(l.chain), client)
			if err != nil {
				return err
			}
		}
		if due {
			tried[client] = tried[client] || kind == agains || kind == turnAgains
			l.sharing[client] = l.sharing[client] || kind == turnFirsts || kind == turnAgains
			l.probes[client] = l.probes[client] || kind == probes
		}
		return nil
	})
	l.soonest = soonest
	ready := make([]tx.Ready, 0, len(tried))
	for client, again := range tried {
		ready = append(ready, tx.Ready{Client: client, Repeats: again})
	}
	return ready, err
}

// look visits the clients with rows of each kind, and finds when the first of a kind is due.
func (l *leasing) look(visit func(kind, client string, soonest int64) error) (map[string]int64, error) {
	soonest := map[string]int64{}
	for _, kind := range []string{firsts, turnFirsts, probes, agains, turnAgains} {
		err := clientsOf(l.conn, l.chain, kind, func(client string, at int64) error {
			if known, met := soonest[kind]; !met || at < known {
				soonest[kind] = at
			}
			if visit == nil {
				return nil
			}
			return visit(kind, client, at)
		})
		if err != nil {
			return nil, err
		}
	}
	return soonest, nil
}

// clientsOf visits the clients that have rows of a kind, with when the first is due.
func clientsOf(conn *sqlite.Conn, id chain.ID, kind string, visit func(client string, soonest int64) error) error {
	after := " AND client >= ?2"
	for client, more := "", true; more; after = " AND client > ?2" {
		more = false
		var soonest int64
		err := query(conn, "SELECT client, "+kind+after+" ORDER BY client, due LIMIT 1", func(s *sqlite.Stmt) bool {
			client, soonest, more = s.ColumnText(0), s.ColumnInt64(1), true
			return false
		}, int64(id), client)
		if err == nil && more {
			err = visit(client, soonest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
