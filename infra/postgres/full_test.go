package postgres_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestFull makes the server report a full disk. Appending callers get at once an error that is
// transient and says that nothing was written.
func TestFull(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	conn := admin(t, op.url)
	execute(t, conn, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$`)
	execute(t, conn, `CREATE TRIGGER full_disk BEFORE INSERT ON log.streams FOR EACH STATEMENT EXECUTE FUNCTION full_disk()`)
	began := time.Now()
	_, err := op.db.Log.Append(ctx, "one", 0, happened("one", 0, 1)...)
	if took := time.Since(began); err == nil || !postgres.Transient(err) || took > 3*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	execute(t, conn, `DROP TRIGGER full_disk ON log.streams`)
	a, err := op.db.Log.Append(ctx, "one", 0, happened("one", 0, 1)...)
	must(t, err)
	if a.Repeated {
		t.Error("the append that was told of a full disk stands")
	}
}

// TestProbe probes writing and leaves nothing behind. A role without the right gets no error.
func TestProbe(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	conn := admin(t, op.url)
	relations := func() (n int) {
		must(t, conn.QueryRow(ctx, `SELECT count(*) FROM pg_class`).Scan(&n))
		return n
	}
	must(t, op.db.Probe(ctx)) // the session's schema for temporary tables stays
	before := relations()
	must(t, op.db.Probe(ctx))
	if after := relations(); after != before {
		t.Errorf("there were %d relations and are %d", before, after)
	}
	must(t, op.db.Close(ctx))
	if op.db.Probe(ctx) == nil {
		t.Error("a closed store takes writes")
	}
}
