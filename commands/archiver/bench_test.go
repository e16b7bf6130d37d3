package archiver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// BenchmarkArchive moves a partition of a Postgres log, and reads it before and after the
// move. It compares dropping the partition with deleting as many rows, and the file with
// the table. Run it with -benchtime 1x.
func BenchmarkArchive(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				moved(b, n)
			}
		})
	}
}

func moved(b *testing.B, n int) {
	ctx, url := b.Context(), testenv.Postgres(b)
	db, err := postgres.Open(ctx, url, postgres.Options{})
	check(b, err)
	defer db.Close(ctx) //nolint:errcheck // the benchmark is over
	check(b, db.Migrate(ctx))
	conn, err := pgx.Connect(ctx, url)
	check(b, err)
	defer conn.Close(ctx) //nolint:errcheck // likewise
	scan := func(text string, args ...any) (value int64) {
		check(b, conn.QueryRow(ctx, text, args...).Scan(&value))
		return value
	}
	scan(`SELECT log.extend($1, $2)`, 2*n, n)
	scan(`SELECT log.extend($1, $2)`, 10*n, 10*n)
	// Transactions of six events, as many in each partition.
	_, err = conn.Exec(ctx, `WITH e AS (SELECT g AS pos, (g - 1) / 6 * 6 + 1 AS no, (g - 1) % 6 + 1 AS version FROM generate_series(1, $1::bigint) g),
		s AS (INSERT INTO log.streams (no, version, last_pos, name) SELECT no, max(version), max(pos), 'tx-42431-0x' || encode(sha256(no::text::bytea), 'hex') FROM e GROUP BY no)
		INSERT INTO log.events (pos, stream, version, id, name, data, actor, trace, link)
		SELECT pos, no, version, gen_random_uuid(), (ARRAY['tx.accepted.v1','tx.broadcast.v1','tx.mined.v1','tx.finalized.v1','tx.payload_erased.v1','tx.retired.v1'])[version],
		convert_to('{"hash":"0x' || encode(sha256((pos * 7)::text::bytea), 'hex') || '","nonce":' || pos || ',"at":"2026-11-21T12:00:00.123456Z","block":{"number":' || pos / 10 || ',"hash":"0x' || encode(sha256((pos / 10)::text::bytea), 'hex') || '"}}', 'UTF8'),
		'watcher', '', sha256(pos::text::bytea) FROM e`, 2*n+6)
	check(b, err)
	scan(`WITH u AS (UPDATE log.head SET pos = $1 RETURNING pos) SELECT pos FROM u`, 2*n+6)
	table := scan(`SELECT pg_total_relation_size('log.events_1')`)

	files := archive.NewFiles(archive.Dir(b.TempDir()), nil)
	whole := archive.NewStore(db.Log, files)
	read := func(log interface {
		archive.Live
	}) time.Duration {
		began, seen := time.Now(), 0
		for batch, err := range log.ReadAll(ctx, 0, eventlog.Filter{}, 2000) {
			check(b, err)
			if seen += len(batch.Events); seen >= n {
				break
			}
		}
		return time.Since(began)
	}
	fromStore := read(db.Log)
	began := time.Now()
	segment, err := files.Write(ctx, eventlog.ID{1}, 1, eventlog.Position(n)+1, whole.ReadAll(ctx, 0, eventlog.Filter{}, 1000))
	check(b, err)
	wrote := time.Since(began)
	check(b, db.Log.KeepSegment(ctx, segment))
	began = time.Now()
	for from := 0; from < n; from += 20_000 { // as copyForward does, and nothing is open
		scan(`SELECT count(*) FROM (SELECT DISTINCT stream FROM log.events WHERE pos > $1 AND pos <= $2) t`, from, from+20_000)
	}
	looked := time.Since(began)
	began = time.Now()
	if begins := scan(`SELECT log.forget($1)`, n+1); begins != int64(n)+1 {
		b.Fatalf("the log begins at %d", begins)
	}
	dropped := time.Since(began)
	fromFile := read(whole)
	began = time.Now()
	_, err = conn.Exec(ctx, `DELETE FROM log.events WHERE pos <= $1`, 2*n)
	check(b, err)
	deleted := time.Since(began)

	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	b.ReportMetric(rate(wrote), "written/s")
	b.ReportMetric(rate(fromFile), "read/s")
	b.ReportMetric(rate(fromStore), "read-store/s")
	b.ReportMetric(float64(looked.Microseconds())/1000, "ms-look")
	b.ReportMetric(float64(dropped.Microseconds())/1000, "ms-drop")
	b.ReportMetric(float64(deleted.Microseconds())/1000, "ms-delete")
	b.ReportMetric(float64(segment.Bytes)/float64(n), "B/event-file")
	b.ReportMetric(float64(table)/float64(n), "B/event-table")
}
