package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrBehind means that the serving tables are behind the shadow with which they are to be
// compared, because they are being rebuilt.
var ErrBehind = errors.New("the serving tables are behind")

// Compare compares the actual rows of a table with the wanted rows, both in key order.
type Compare func(table Table, want, got iter.Seq2[string, []byte]) error

// Verify builds the shadow up to the serving tables' checkpoint, and compares both at the same
// position. It does not change the serving tables. Afterwards it drops the shadow; after an
// error it keeps the shadow, and the next run resumes from it.
func (r *Rebuild) Verify(ctx context.Context, compare Compare) (Progress, error) {
	if err := r.prepare(ctx); err != nil {
		return r.at, err
	}
	live, err := position(ctx, r.Shadow.Live(), "", r.Model.Name)
	if err != nil {
		return r.at, err
	}
	if r.at.Position > live {
		return r.at, fmt.Errorf("%s: %w: they are at position %d, the shadow is at %d", r.Model.Name, ErrBehind, live, r.at.Position)
	}
	if err := r.make(ctx, live); err != nil {
		return r.at, err
	}
	// A snapshot of the serving tables is held while the shadow catches up with its position.
	snapshot, err := r.Shadow.Live().BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return r.at, err
	}
	defer snapshot.Rollback() //nolint:errcheck // it only reads
	at, err := position(ctx, snapshot, "", r.Model.Name)
	if err != nil {
		return r.at, err
	}
	if at < r.at.Position {
		return r.at, fmt.Errorf("%s: %w: they went back to position %d", r.Model.Name, ErrBehind, at)
	}
	r.at.Head = at
	if err := r.foldUpTo(ctx, at); err != nil {
		return r.at, err
	}
	r.tell(StepHold)
	for _, table := range r.Model.Tables {
		var failed error
		err := compare(table, table.Rows(ctx, r.Shadow.DB(), r.Shadow.Prefix(), &failed), table.Rows(ctx, snapshot, "", &failed))
		if err := errors.Join(failed, err); err != nil {
			return r.at, err
		}
	}
	return r.at, r.Shadow.Drop(ctx)
}

// Positions returns the checkpoint of a model's serving tables and the head of the log.
func Positions(ctx context.Context, live *sql.DB, log Source, name string) (at, head eventlog.Position, err error) {
	if at, err = position(ctx, live, "", name); err != nil {
		return 0, 0, err
	}
	head, err = log.Head(ctx)
	return at, head, err
}
