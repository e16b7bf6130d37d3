package postgres

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// One pass over queued and dead notices, and one over the endpoints; callers run it rarely.
const depthOfNotices = `
SELECT count(*) FILTER (WHERE n.stage = 'queued' AND NOT coalesce(n.leased_until > now.is, false)),
       count(*) FILTER (WHERE n.stage = 'queued' AND n.leased_until > now.is),
       count(*) FILTER (WHERE n.stage = 'dead'),
       count(*) FILTER (WHERE due),
       coalesce(max(now.is - n.next_at) FILTER (WHERE due), '0')
FROM (SELECT clock_timestamp() AS is) now
LEFT JOIN work.notices n ON n.stage IN ('queued', 'dead')
LEFT JOIN work.notice_endpoints e USING (endpoint)
CROSS JOIN LATERAL (SELECT n.head AND NOT coalesce(n.leased_until > now.is, false) AND n.next_at <= now.is AND e.failures = 0 AND e.disabled = ''
  AND NOT coalesce(e.paused_until > now.is, false) AS due) d`

const depthOfEndpoints = `
SELECT count(*) FILTER (WHERE disabled = '' AND failures = 0),
       count(*) FILTER (WHERE disabled = '' AND failures > 0),
       count(*) FILTER (WHERE disabled <> '')
FROM work.notice_endpoints`

// Depth counts the queued and the dead notices, and the endpoints. It reads all of them.
func (s *Notices) Depth(ctx context.Context) (d notice.Depth, err error) {
	return d, retry(ctx, func() error {
		err := s.pool.QueryRow(ctx, depthOfNotices).Scan(&d.Queued, &d.Delivering, &d.Dead, &d.Due, &d.OldestDue)
		if err != nil {
			return err
		}
		return s.pool.QueryRow(ctx, depthOfEndpoints).Scan(&d.Working, &d.Failing, &d.Disabled)
	})
}
