package embedded

import (
	"context"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Lease gives notices to a holder, as chosen by [notice.Policy.Choose]. until is the time until
// there may be more: 0 if there may be now, a minute if nothing is due before that.
func (s *Notices) Lease(ctx context.Context, c notice.Claim) ([]notice.Sending, time.Duration, error) {
	if c.Limit <= 0 {
		return nil, 0, nil
	}
	l, err := write(ctx, s.work.file, "lease notices", func(conn *sqlite.Conn) (*noticeLease, error) {
		l := &noticeLease{noticeChange: noticeChange{conn: conn, policy: s.policy, now: s.now()}, Claim: c}
		return l, l.run()
	})
	if err != nil {
		return nil, 0, err
	}
	return l.leased, l.until, nil
}

// noticeLease is the state of one call of Lease.
type noticeLease struct {
	noticeChange
	notice.Claim

	leased []notice.Sending
	until  time.Duration
}

func (l *noticeLease) run() error {
	if err := l.rewind(); err != nil {
		return err
	}
	due, err := l.due()
	if err != nil {
		return err
	}
	var offers []notice.Offer
	for _, id := range due {
		offer, err := l.offer(id)
		if err != nil {
			return err
		}
		offers = append(offers, offer)
	}
	var full []string
	l.leased, full = l.policy.Choose(l.Claim, offers, l.now)
	for _, n := range l.leased {
		err := exec(l.conn, "UPDATE notices SET holder = ?, lease_until = ? WHERE endpoint = ? AND intent = ? AND seq = ?",
			l.Holder, micros(l.now.Add(l.TTL)), n.Endpoint[:], n.Intent[:], int64(n.Seq))
		if err != nil {
			return err
		}
	}
	for _, id := range due {
		if err := l.moveDue(id); err != nil {
			return err
		}
	}
	return l.next(append(full, l.Full()...))
}

// due finds endpoints with due notices, as many as notices may be leased. Clients take turns,
// and each client's endpoint that is due longest goes first.
func (l *noticeLease) due() ([]notice.EndpointID, error) {
	full, byClient := l.Full(), map[string][]notice.EndpointID{}
	clients, err := l.clients()
	if err != nil {
		return nil, err
	}
	for _, client := range clients {
		if slices.Contains(full, client) {
			continue
		}
		err := query(l.conn, "SELECT endpoint FROM notice_endpoints INDEXED BY notice_endpoints_turns WHERE client = ? AND due_at <= ? ORDER BY due_at LIMIT ?",
			func(row *sqlite.Stmt) bool {
				var id notice.EndpointID
				row.ColumnBytes(0, id[:])
				byClient[client] = append(byClient[client], id)
				return true
			}, client, micros(l.now), int64(l.Limit))
		if err != nil {
			return nil, err
		}
	}
	return fair.Deal(l.Turn, l.Limit, byClient), nil
}

// clients are the clients of endpoints with queued notices.
func (l *noticeLease) clients() (clients []string, err error) {
	where := "due_at IS NOT NULL"
	for more := true; more && err == nil; where = "due_at IS NOT NULL AND client > ?" {
		more = false
		var args []any
		if n := len(clients); n > 0 {
			args = []any{clients[n-1]}
		}
		err = query(l.conn, "SELECT client FROM notice_endpoints INDEXED BY notice_endpoints_turns WHERE "+where+" ORDER BY client LIMIT 1", func(row *sqlite.Stmt) bool {
			clients, more = append(clients, row.ColumnText(0)), true
			return false
		}, args...)
	}
	return clients, err
}

// rewind makes due all times stored before the clock was set back: notices without attempts,
// notices attempted by the earlier clock, and paused endpoints. A lease ends no later than a
// lease that begins now.
func (l *noticeLease) rewind() error {
	var astray []notice.EndpointID
	err := query(l.conn, "SELECT endpoint FROM notice_endpoints WHERE due_at IS NOT NULL AND told_at > ? LIMIT ?", func(row *sqlite.Stmt) bool {
		var id notice.EndpointID
		row.ColumnBytes(0, id[:])
		astray = append(astray, id)
		return true
	}, micros(l.now.Add(clockSlack)), int64(l.Limit))
	for _, id := range astray {
		if err == nil {
			err = exec(l.conn, `UPDATE notices SET lease_until = min(lease_until, ?3),
				next_at = CASE WHEN attempts = 0 OR last_at > ?2 THEN min(next_at, ?2) ELSE next_at END
				WHERE endpoint = ?1 AND stage = 'queued' AND (next_at > ?2 OR holder IS NOT NULL)`, id[:], micros(l.now), micros(l.now.Add(l.TTL)))
		}
		if err == nil {
			err = exec(l.conn, `UPDATE notice_endpoints SET due_at = ?2, told_at = ?2, paused_until = NULL,
				failing_since = min(failing_since, ?2) WHERE endpoint = ?1`, id[:], micros(l.now))
		}
	}
	return err
}

// offer reads an endpoint and its due notices, for Choose.
func (l *noticeLease) offer(id notice.EndpointID) (o notice.Offer, err error) {
	err = exec(l.conn, "UPDATE notices SET holder = NULL, lease_until = NULL WHERE endpoint = ? AND holder IS NOT NULL AND lease_until <= ?", id[:], micros(l.now))
	if err != nil {
		return o, err
	}
	if o.Endpoint, _, err = endpointOf(l.conn, id); err != nil {
		return o, err
	}
	err = query(l.conn, "SELECT count(*) FROM notices WHERE endpoint = ? AND holder IS NOT NULL", func(row *sqlite.Stmt) bool {
		o.Leased = row.ColumnInt(0)
		return false
	}, id[:])
	if err == nil {
		o.Heads, err = notices(l.conn, l.now, "endpoint = ? AND head = 1 AND holder IS NULL AND next_at <= ? ORDER BY next_at LIMIT ?",
			id[:], micros(l.now), int64(l.policy.Concurrency))
	}
	return o, err
}

// next finds the time until there may be more, for clients with free slots.
func (l *noticeLease) next(full []string) error {
	if len(l.leased) == l.Limit {
		return nil
	}
	l.until = horizon
	return query(l.conn, "SELECT due_at, client FROM notice_endpoints WHERE due_at < ? ORDER BY due_at", func(row *sqlite.Stmt) bool {
		if slices.Contains(full, row.ColumnText(1)) {
			return true
		}
		l.until = min(horizon, max(0, timeAt(row, 0).Sub(l.now)))
		return false
	}, micros(l.now.Add(horizon)))
}

// Done ends the holder's leases with the results of the attempts. It returns the endpoints that
// become disabled; Sweep gives up their queued notices. Reports on notices that the holder no
// longer holds change nothing.
func (s *Notices) Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error) {
	return doFor(ctx, s, "report notices", func(c *noticeChange) (disabled []notice.Endpoint, err error) {
		for _, r := range reports {
			e, err := c.done(holder, r)
			if err != nil {
				return nil, err
			}
			if e.Disabled != notice.Enabled {
				disabled = append(disabled, e)
			}
		}
		return disabled, nil
	})
}

// done applies one report. It returns the endpoint if it becomes disabled.
func (c *noticeChange) done(holder string, r notice.Report) (notice.Endpoint, error) {
	found, err := notices(c.conn, c.now, "endpoint = ? AND intent = ? AND seq = ? AND holder = ?", r.Key.Endpoint[:], r.Key.Intent[:], int64(r.Key.Seq), holder)
	if err != nil || len(found) == 0 {
		return notice.Endpoint{}, err
	}
	before, _, err := endpointOf(c.conn, r.Key.Endpoint)
	if err != nil {
		return notice.Endpoint{}, err
	}
	n, after := c.policy.After(found[0], before, r.Outcome, c.now)
	var settled any
	if n.Stage != notice.Queued {
		settled = micros(c.now)
	}
	err = exec(c.conn, `UPDATE notices SET stage = ?4, attempts = ?5, next_at = ?6, class = ?7, cause = ?8, status = ?9, last_at = ?10,
		holder = NULL, lease_until = NULL, head = head AND ?4 = 'queued', settled_at = ?11
		WHERE endpoint = ?1 AND intent = ?2 AND seq = ?3`,
		n.Endpoint[:], n.Intent[:], int64(n.Seq), string(n.Stage), int64(n.Attempts), micros(n.NextAt),
		string(n.Last.Class), string(n.Last.Cause), int64(n.Last.Status), micros(n.LastAt), settled)
	if err != nil {
		return notice.Endpoint{}, err
	}
	c.touch(n.Key)
	if err := c.put(after); err != nil || before.Disabled != notice.Enabled {
		return notice.Endpoint{}, err
	}
	return after, nil
}

// put stores an endpoint's state. Sweep gives up the queued notices of an endpoint that becomes
// disabled. If it is enabled before Sweep has finished, the rest stays queued.
func (c *noticeChange) put(e notice.Endpoint) error {
	return exec(c.conn, `UPDATE notice_endpoints SET failures = ?2, failing_since = ?3, paused_until = ?4, disabled = ?5, disabled_at = ?6,
		attempts = ?7, delivered = ?8, last_at = ?9, last_class = ?10, last_cause = ?11, last_status = ?12,
		sweep = CASE WHEN ?5 <> '' AND disabled = '' THEN 'give-up' WHEN ?5 = '' AND sweep = 'give-up' THEN '' ELSE sweep END,
		sweep_intent = CASE WHEN ?5 <> '' AND disabled = '' THEN zeroblob(16) ELSE sweep_intent END WHERE endpoint = ?1`,
		e.ID[:], int64(e.Failures), microsOrNull(e.FailingSince), microsOrNull(e.PausedUntil), string(e.Disabled), microsOrNull(e.DisabledAt),
		int64(e.Attempts), int64(e.Delivered), microsOrNull(e.LastAt), string(e.Last.Class), string(e.Last.Cause), int64(e.Last.Status))
}
