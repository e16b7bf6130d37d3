package rig

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // opens view.db
)

// Command is a finished run of a program: its output, and its exit status, which is -1 if it was
// killed.
type Command struct {
	Stdout, Stderr string
	Status         int
}

// Says returns all output.
func (c Command) Says() string { return c.Stdout + c.Stderr }

// Run runs a command of a program, with env added to this process's environment. The error says
// that it could not run, or that it has a data race.
func Run(ctx context.Context, stdin io.Reader, env []string, program string, args ...string) (Command, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stdin = append(environment(), env...), stdin
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return Command{}, err
	}
	c := Command{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
	if strings.Contains(c.Stderr, "DATA RACE") {
		return c, fmt.Errorf("%v has a data race: %s", args, c.Stderr)
	}
	return c, nil
}

// OnView runs statements on the read models of a database, embedded:FOLDER or postgres://…, in
// one database transaction. A service may be running.
func OnView(ctx context.Context, database string, statements ...string) error {
	dir, embedded := strings.CutPrefix(database, "embedded:")
	if !embedded {
		conn, err := pgx.Connect(ctx, database)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "BEGIN; SET LOCAL search_path = view; "+strings.Join(statements, "; ")+"; COMMIT")
		return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "view.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the commit tells
	dbtx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, text := range statements {
		if _, err := dbtx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return dbtx.Commit()
}
