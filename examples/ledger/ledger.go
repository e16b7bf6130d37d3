package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	_ "modernc.org/sqlite" // the database

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// Ledger is a database with the effects of events. It also records the last version of each
// stream that has taken effect.
type Ledger struct {
	db    *sql.DB
	codec eventlog.Codec[tx.Event]
}

const tables = `
CREATE TABLE IF NOT EXISTS seen (stream TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS senders (stream TEXT PRIMARY KEY, sender TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS delivered (sender TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;`

// OpenLedger opens a database, and creates it if it is missing.
func OpenLedger(ctx context.Context, path string) (*Ledger, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Ledger{db, tx.Codec()}, nil
}

// Close closes the database.
func (l *Ledger) Close() error { return l.db.Close() }

// Handle applies an event's effect, and records its version, in one transaction. So the effect
// happens once, however often the event is delivered. It fails if an event of the stream is
// missing.
func (l *Ledger) Handle(m *message.Message) error {
	o, err := feed.OriginOf(m)
	if err != nil {
		return err
	}
	e, err := l.codec.Decode(o.Name, m.Payload)
	if err != nil {
		return err
	}
	t, err := l.db.BeginTx(m.Context(), nil)
	if err != nil {
		return err
	}
	defer t.Rollback() //nolint:errcheck // after a commit it does nothing
	isNew, err := see(m.Context(), t, o)
	if err != nil || !isNew {
		return err
	}
	if err := effect(m.Context(), t, o.Stream, e); err != nil {
		return err
	}
	return t.Commit()
}

// effect updates the count of delivered transactions.
func effect(ctx context.Context, t *sql.Tx, stream eventlog.Stream, e tx.Event) (err error) {
	switch e := e.(type) { //nolint:gochecksumtype // the others have no effect
	case tx.Accepted:
		_, err = t.ExecContext(ctx, `INSERT INTO senders (stream, sender) VALUES ($1, $2)`, stream, e.Sender.String())
	case tx.Finalized:
		if e.Verdict == tx.StatusExecuted {
			_, err = t.ExecContext(ctx, `INSERT INTO delivered (sender, n) SELECT sender, 1 FROM senders WHERE stream = $1
				ON CONFLICT (sender) DO UPDATE SET n = n + 1`, stream)
		}
	}
	return err
}

// see records the event's version. isNew is false for an event that was recorded before.
func see(ctx context.Context, t *sql.Tx, o feed.Origin) (isNew bool, err error) {
	var at int64
	err = t.QueryRowContext(ctx, `SELECT version FROM seen WHERE stream = $1`, o.Stream).Scan(&at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	switch version := int64(o.Version); {
	case version <= at:
		return false, nil
	case version > at+1:
		return false, fmt.Errorf("%s: version %d follows %d", o.Stream, version, at)
	}
	_, err = t.ExecContext(ctx, `INSERT INTO seen (stream, version) VALUES ($1, $2)
		ON CONFLICT (stream) DO UPDATE SET version = excluded.version`, o.Stream, int64(o.Version))
	return true, err
}
