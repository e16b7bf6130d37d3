package embedded

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

const (
	depthOfNotices = `SELECT
		count(*) FILTER (WHERE stage = 'queued' AND coalesce(lease_until, 0) <= ?1),
		count(*) FILTER (WHERE stage = 'queued' AND lease_until > ?1),
		count(*) FILTER (WHERE stage = 'dead'),
		count(*) FILTER (WHERE due),
		coalesce(?1 - min(next_at) FILTER (WHERE due), 0)
		FROM (SELECT n.stage, n.lease_until, n.next_at, n.head = 1 AND coalesce(n.lease_until, 0) <= ?1 AND n.next_at <= ?1
				AND e.failures = 0 AND e.disabled = '' AND coalesce(e.paused_until, 0) <= ?1 AS due
			FROM notices n JOIN notice_endpoints e USING (endpoint) WHERE n.stage IN ('queued', 'dead'))`

	depthOfEndpoints = `SELECT
		count(*) FILTER (WHERE disabled = '' AND failures = 0),
		count(*) FILTER (WHERE disabled = '' AND failures > 0),
		count(*) FILTER (WHERE disabled <> '')
		FROM notice_endpoints`
)

// Depth counts the queued and the dead notices, and the endpoints. It reads all of them.
func (s *Notices) Depth(ctx context.Context) (d notice.Depth, err error) {
	now := micros(s.now())
	read := func(row *sqlite.Stmt, into ...*int) {
		for i := range into {
			*into[i] = row.ColumnInt(i)
		}
	}
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		err := query(conn, depthOfNotices, func(row *sqlite.Stmt) bool {
			read(row, &d.Queued, &d.Delivering, &d.Dead, &d.Due)
			d.OldestDue = time.Duration(row.ColumnInt64(4)) * time.Microsecond
			return false
		}, now)
		if err != nil {
			return err
		}
		return query(conn, depthOfEndpoints, func(row *sqlite.Stmt) bool {
			read(row, &d.Working, &d.Failing, &d.Disabled)
			return false
		})
	})
	return d, err
}
