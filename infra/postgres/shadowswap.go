package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A swap's lock waits. Readers queue behind a waiting swap, so it gives up soon and retries
// with a longer wait each time. The first wait is well below the server's deadlock timeout.
const (
	swapLockFirst = 100 * time.Millisecond
	swapLockMost  = 2 * time.Second
	swapTries     = 60
)

// Swap replaces the serving tables by the shadow's.
func (s *Shadow) Swap(ctx context.Context, last func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error)) error {
	wait := swapLockFirst
	for try := 1; ; try++ {
		err := s.swap(ctx, wait, last)
		if c := code(err); c != lockNotHad && c != deadlockFound || try == swapTries {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(wait*3/2, swapLockMost)
	}
}

func (s *Shadow) swap(ctx context.Context, wait time.Duration, last func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error)) error {
	dbtx, err := s.own.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	own, live, err := s.hold(ctx, dbtx, wait)
	if err != nil {
		return err
	}
	at, err := last(dbtx, own, live)
	if err != nil {
		return err
	}
	serving := make([]string, len(s.tables))
	for i, table := range s.tables {
		serving[i] = liveSchema + `.` + table
	}
	// One statement, in the order in which queries lock them.
	texts := []string{`LOCK TABLE ` + strings.Join(serving, ", ") + ` IN ACCESS EXCLUSIVE MODE`}
	for _, table := range s.tables {
		same, err := s.rights(ctx, dbtx, table)
		if err != nil {
			return err
		}
		texts = append(texts, same...)
	}
	for _, table := range s.tables {
		texts = append(texts, `DROP TABLE `+liveSchema+`.`+table, `ALTER TABLE `+s.schema+`.`+table+` SET SCHEMA `+liveSchema)
	}
	for _, text := range append(texts, `DROP SCHEMA `+s.schema+` CASCADE`) {
		if _, err := dbtx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if _, err := dbtx.ExecContext(ctx, `UPDATE view.readers SET position = $1 WHERE name = $2`, int64(at), s.reader); err != nil { //nolint:gosec // positions are below 2^63
		return err
	}
	if err := s.alone(ctx); err != nil {
		return err
	}
	return s.committed(ctx, dbtx.Commit())
}

// alone checks that the session with the lock exists. Then no other process has restarted the
// shadow, and none can while its tables are locked, as they are now.
func (s *Shadow) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, swapLockMost)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		return fmt.Errorf("the staging tables' lock was lost, so another process may use them: rebuild again: %w", err)
	}
	return nil
}

// committed returns a swap's outcome from its commit error. If the error is ambiguous, the
// existence of the shadow decides: a committed swap removes it.
func (s *Shadow) committed(ctx context.Context, err error) error {
	err = unsure(err)
	if !errors.Is(err, eventlog.ErrUnknown) {
		return err
	}
	if there, lost := s.left(ctx); lost != nil || there {
		return errors.Join(err, lost)
	}
	return nil
}

// hold locks the serving checkpoint, so that its projector stops, and returns both positions.
func (s *Shadow) hold(ctx context.Context, dbtx *sql.Tx, wait time.Duration) (own, live eventlog.Position, err error) {
	for _, text := range []string{
		fmt.Sprintf(`SET LOCAL lock_timeout = '%dms'`, wait.Milliseconds()),
		`SET LOCAL idle_in_transaction_session_timeout = '5s'`, // a stopped process would block others
	} {
		if _, err := dbtx.ExecContext(ctx, text); err != nil {
			return 0, 0, err
		}
	}
	var outdated bool
	if err := dbtx.QueryRowContext(ctx, isOutdated).Scan(&outdated); err != nil {
		return 0, 0, err
	}
	if outdated {
		return 0, 0, errors.New("a newer version of the program has changed the serving tables: rebuild with that version")
	}
	if _, err := dbtx.ExecContext(ctx, `INSERT INTO view.readers (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING`, s.reader); err != nil {
		return 0, 0, err
	}
	var a, b int64
	if err := dbtx.QueryRowContext(ctx, `SELECT position FROM view.readers WHERE name = $1 FOR UPDATE`, s.reader).Scan(&b); err != nil {
		return 0, 0, err
	}
	err = dbtx.QueryRowContext(ctx, `SELECT position FROM readers WHERE name = $1`, s.reader).Scan(&a)
	return eventlog.Position(a), eventlog.Position(b), err
}

// rights are the statements that give a new table the old one's owner and privileges.
func (s *Shadow) rights(ctx context.Context, dbtx *sql.Tx, table string) (texts []string, err error) {
	const same = `
SELECT format('ALTER TABLE %I.%I OWNER TO %I', $1::text, $2::text, pg_get_userbyid(c.relowner)) FROM pg_class c
WHERE c.oid = to_regclass($3) AND pg_get_userbyid(c.relowner) <> current_user
UNION ALL
SELECT format('GRANT %s ON %I.%I TO %s', a.privilege_type, $1::text, $2::text,
  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass($3) AND a.grantee <> c.relowner`
	rows, err := dbtx.QueryContext(ctx, same, s.schema, table, liveSchema+"."+table)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}
