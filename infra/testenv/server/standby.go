package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
)

// NewStandby copies a running server. When started, the copy follows it as the standby of that
// name.
func (p *Postgres) NewStandby(ctx context.Context, name string) (*Postgres, error) {
	dir, err := newFolder("wt-pg-")
	if err != nil {
		return nil, err
	}
	s := &Postgres{bin: p.bin, dir: dir, as: p.as}
	if err := s.copyOf(ctx, p, name); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (p *Postgres) copyOf(ctx context.Context, primary *Postgres, name string) error {
	if err := p.makeData(); err != nil {
		return err
	}
	from := primary.URL() + "?application_name=" + name
	out, err := p.command(ctx, "pg_basebackup", "-D", p.data(), "-d", from, "-R", "-X", "stream", "-c", "fast", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return os.Chmod(p.data(), 0o700)
}

// Promote makes a standby the primary, and waits until it is.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.run(ctx, `SELECT pg_promote(true, 30)`)
}

// Synchronous makes the server's commits wait for the standby of that name; the empty name
// means none.
func (p *Postgres) Synchronous(ctx context.Context, name string) error {
	return errors.Join(p.run(ctx, fmt.Sprintf(`ALTER SYSTEM SET synchronous_standby_names = '%s'`, name)), p.run(ctx, `SELECT pg_reload_conf()`))
}

func (p *Postgres) run(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement has been run
	_, err = conn.Exec(ctx, sql)
	return err
}
